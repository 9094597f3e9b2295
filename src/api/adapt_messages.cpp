// Messages in the words of one template.
#include <fmt/format.h>

#include "api/fields.h"
#include "api/messages.h"

namespace exl3::api {
namespace {

// Tools for a model whose template does not know them, in the words of the Hermes format, which the
// parser of the answer understands.
std::string describe_tools(const std::vector<ToolSpec>& tools) {
    std::string text =
        "You may call functions to answer. Their signatures are within <tools></tools>:\n<tools>\n";
    for (const Json& tool : template_tools(tools)) text += to_text(tool) + "\n";
    return text +
           "</tools>\nFor each call, answer with a JSON object with the name of the function and "
           "its arguments within <tool_call></tool_call>:\n<tool_call>\n{\"name\": "
           "<function-name>, "
           "\"arguments\": <object>}\n</tool_call>";
}

void add_system_text(Json& messages, const std::string& text) {
    if (!messages.empty() && messages[0]["role"] == "system") {
        messages[0]["content"] = content_text(messages[0]["content"]) + "\n\n" + text;
        return;
    }
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", text}});
}

// Results as text, for templates without tools.
void write_out_result(Json& message) {
    if (message["role"] != "tool") return;
    message["role"] = "user";
    message["content"] =
        "<tool_response>\n" + content_text(message["content"]) + "\n</tool_response>";
    message.erase("tool_call_id");
}

// Calls as text, for templates that do not show them.
void write_out_calls(Json& message) {
    if (!message.contains("tool_calls")) return;
    std::string text = content_text(message["content"]);
    for (const Json& call : message["tool_calls"]) {
        if (!text.empty()) text += '\n';
        text += "<tool_call>\n" + to_text(call["function"]) + "\n</tool_call>";
    }
    message["content"] = text;
    message.erase("tool_calls");
}

std::string short_id(const std::string& id) {
    constexpr std::string_view kLetters =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const bool plain = id.size() == 9 && id.find_first_not_of(kLetters) == std::string::npos;
    if (plain) return id;
    uint64_t hash = 1469598103934665603ull;  // FNV-1a
    for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    std::string out;
    for (int i = 0; i < 9; ++i, hash /= kLetters.size()) out += kLetters[hash % kLetters.size()];
    return out;
}

// System messages after the first join it, for templates that accept them only there.
void gather_system(Json& messages) {
    for (size_t i = 1; i < messages.size();) {
        if (messages[i]["role"] != "system") {
            ++i;
            continue;
        }
        const std::string text = content_text(messages[i]["content"]);
        messages.erase(i);
        const size_t before = messages.size();
        add_system_text(messages, text);
        if (messages.size() > before) ++i;
    }
}

}  // namespace

void adapt_messages(Json& chat, const MessageTraits& traits, const std::vector<ToolSpec>& tools) {
    Json& messages = chat["messages"];
    for (Json& m : messages) {
        if (m["role"] == "developer" && !traits.developer_role) m["role"] = "system";
        if (m.contains("content") && m["content"].is_array() && !traits.part_lists)
            m["content"] = content_text(m["content"]);
        if (!traits.tools) write_out_result(m);
        if (!traits.tools || !traits.calls) write_out_calls(m);
        if (traits.text_arguments && m.contains("tool_calls"))
            for (Json& call : m["tool_calls"]) {
                Json& arguments = call["function"]["arguments"];
                if (!arguments.is_string()) arguments = to_text(arguments);
            }
        if (traits.short_call_ids) {
            if (m.contains("tool_call_id"))
                m["tool_call_id"] = short_id(m["tool_call_id"].get<std::string>());
            if (m.contains("tool_calls"))
                for (Json& call : m["tool_calls"])
                    call["id"] = short_id(call["id"].get<std::string>());
        }
    }
    if (!traits.system_anywhere) gather_system(messages);
    if (tools.empty()) return;
    if (traits.tools)
        chat["tools"] = template_tools(tools);
    else
        add_system_text(messages, describe_tools(tools));
}

}  // namespace exl3::api
