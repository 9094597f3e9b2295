// POST /v1/responses: conversations as lists of items.
#include <fmt/format.h>

#include "api/fields.h"
#include "api/messages.h"
#include "api/request.h"

namespace exl3::api {
namespace {

/// Turns items into chat messages. Calls that follow each other, and the text before them, are one
/// message of the assistant; reasoning belongs to the message after it.
class ItemReader {
public:
    explicit ItemReader(Json& out) : out_(out) {}

    void read(const Json& item, const std::string& path) {
        const Fields f(item, path);
        const std::string type = f.text({"type"}).value_or("message");
        if (type == "message") {
            message(f);
        } else if (type == "function_call" || type == "custom_tool_call") {
            call(f, type == "custom_tool_call");
        } else if (type == "function_call_output" || type == "custom_tool_call_output") {
            result(f);
        } else if (type == "reasoning") {
            reasoning(f);
        } else if (type == "item_reference") {
            f.fail("type", "found a reference, needed the item itself: items are not kept alone");
        }
        // Items of hosted tools say nothing to a local model.
    }
    void finish() {
        if (!thought_.empty()) assistant();
    }

private:
    void message(const Fields& f) {
        const std::string role = f.need_text("role");
        const Json* content = f.find({"content"});
        if (!content) f.fail("content", "missing, needed a string or a list of parts");
        if (role != "assistant") {
            out_.push_back({{"role", role}, {"content", *content}});
            return;
        }
        Json& m = out_.emplace_back(Json{{"role", role}, {"content", *content}});
        if (!thought_.empty()) m["reasoning_content"] = std::exchange(thought_, {});
    }

    // The assistant's message that a call belongs to.
    Json& assistant() {
        const bool goes_on =
            !out_.empty() && out_.back()["role"] == "assistant" && thought_.empty();
        if (!goes_on) out_.push_back({{"role", "assistant"}, {"content", nullptr}});
        Json& m = out_.back();
        if (!thought_.empty()) m["reasoning_content"] = std::exchange(thought_, {});
        return m;
    }

    void call(const Fields& f, bool custom) {
        Json arguments = custom ? Json{{"input", f.text({"input"}).value_or("")}}
                                : Json(f.text({"arguments"}).value_or("{}"));
        Json& m = assistant();
        if (!m.contains("tool_calls")) m["tool_calls"] = Json::array();
        m["tool_calls"].push_back(
            {{"id", f.text({"call_id", "id"}).value_or("")},
             {"type", "function"},
             {"function", {{"name", f.need_text("name")}, {"arguments", std::move(arguments)}}}});
    }

    void result(const Fields& f) {
        const Json* output = f.find({"output"});
        out_.push_back({{"role", "tool"},
                        {"tool_call_id", f.need_text("call_id")},
                        {"content", output ? *output : Json("")}});
    }

    void reasoning(const Fields& f) {
        for (const char* key : {"content", "summary"}) {
            const Json* parts = f.array({key});
            if (!parts) continue;
            for (const Json& part : *parts)
                if (part.is_object() && part.contains("text") && part["text"].is_string())
                    thought_ += part["text"].get<std::string>();
            if (!thought_.empty()) return;
        }
    }

    Json& out_;
    std::string thought_;
};

Json read_items(const Fields& f, const Json& earlier) {
    Json messages = Json::array();
    if (const auto instructions = f.text({"instructions"}))
        messages.push_back({{"role", "system"}, {"content", *instructions}});
    for (const Json& m : earlier) messages.push_back(m);
    const Json* input = f.find({"input"});
    if (!input) f.fail("input", "missing, needed a string or a list of items");
    if (input->is_string()) {
        messages.push_back({{"role", "user"}, {"content", *input}});
    } else if (input->is_array()) {
        ItemReader reader(messages);
        for (size_t i = 0; i < input->size(); ++i)
            reader.read((*input)[i], fmt::format("input[{}]", i));
        reader.finish();
    } else {
        f.fail("input",
               fmt::format("found {}, needed a string or a list of items", kind_of(*input)));
    }
    if (messages.empty()) f.fail("input", "found an empty list, needed at least one item");
    return read_chat_messages(messages, "input");
}

void read_text_format(const Fields& f, OutputControls& out) {
    const Json* text = f.object({"text"});
    if (!text) return;
    const Json* format = Fields(*text, "text").object({"format"});
    if (!format) return;
    const Fields g(*format, "text.format");
    const std::string type = g.need_text("type");
    using Kind = OutputFormat::Kind;
    if (type == "json_object") {
        out.format = OutputFormat{Kind::json_object, "text.format", {}, false};
    } else if (type == "json_schema") {
        const Json* schema = g.find({"schema"});
        if (!schema) g.fail("schema", "missing, needed a JSON schema");
        out.format = OutputFormat{Kind::json_schema, "text.format", *schema,
                                  g.flag({"strict"}).value_or(false)};
    } else if (type != "text") {
        g.fail("type", fmt::format("found '{}', needed text, json_object or json_schema", type));
    }
}

// What the Response object repeats, with the defaults clients expect to find.
Json echoed_fields(const Json& request) {
    const auto get = [&](const char* key, Json otherwise) {
        const auto it = request.find(key);
        return it == request.end() || it->is_null() ? otherwise : *it;
    };
    Json text = get("text", Json::object());
    if (!text.contains("format")) text["format"] = {{"type", "text"}};
    return {{"instructions", get("instructions", nullptr)},
            {"max_output_tokens", get("max_output_tokens", nullptr)},
            {"max_tool_calls", get("max_tool_calls", nullptr)},
            {"metadata", get("metadata", Json::object())},
            {"parallel_tool_calls", get("parallel_tool_calls", true)},
            {"previous_response_id", get("previous_response_id", nullptr)},
            {"reasoning", get("reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
            {"store", get("store", true)},
            {"temperature", get("temperature", 1.0)},
            {"text", std::move(text)},
            {"tool_choice", get("tool_choice", "auto")},
            {"tools", get("tools", Json::array())},
            {"top_p", get("top_p", 1.0)},
            {"truncation", get("truncation", "disabled")},
            {"user", get("user", nullptr)},
            {"background", false},
            {"service_tier", "default"}};
}

}  // namespace

GenerationRequest read_responses(const Json& request, const RequestDefaults& defaults,
                                 const Json& earlier) {
    const Fields f(request, "");
    GenerationRequest r;
    read_stream_fields(request, r);
    if (f.flag({"background"}).value_or(false))
        f.fail("background", "found true, needed false: answers are not made in the background");
    r.output = read_controls(request, defaults);
    r.output.n = 1;
    read_text_format(f, r.output);
    if (const auto top = f.integer({"top_logprobs"}, 0, 20); top && *top > 0) {
        r.output.logprobs = true;
        r.output.top_logprobs = static_cast<int>(*top);
    }
    r.chat = {{"messages", read_items(f, earlier)}};
    if (const Json* tools = f.array({"tools"})) r.tools = read_tools(*tools, "tools");
    Json choice = request;
    // A choice of a hosted tool cannot be met.
    r.tool_choice = read_tool_choice(choice, r.tools);
    Json vars = request;
    if (const Json* text = f.object({"text"}); text && text->contains("verbosity"))
        vars["verbosity"] = (*text)["verbosity"];
    add_template_vars(vars, defaults, r.chat);
    r.chat["add_generation_prompt"] = true;
    r.echoed = echoed_fields(request);
    return r;
}

}  // namespace exl3::api
