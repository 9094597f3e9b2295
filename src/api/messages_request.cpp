// POST /v1/messages: conversations as Anthropic's clients send them.
#include <fmt/format.h>

#include "api/fields.h"
#include "api/messages.h"
#include "api/request.h"

namespace exl3::api {
namespace {

[[noreturn]] void refuse_media(const std::string& path, std::string_view what) {
    throw bad_field(path, fmt::format("found {}, needed text: this model takes no {}", what, what));
}

// The text of content that may be a string or a list of blocks.
std::string blocks_text(const Json& content, const std::string& path) {
    if (content.is_null()) return {};
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array())
        throw bad_field(
            path, fmt::format("found {}, needed a string or a list of blocks", kind_of(content)));
    std::string text;
    for (size_t i = 0; i < content.size(); ++i) {
        const Fields f(content[i], fmt::format("{}[{}]", path, i));
        const std::string type = f.text({"type"}).value_or("text");
        if (type == "image") refuse_media(f.at("type"), "images");
        std::string piece;
        if (type == "text") {
            piece = f.need_text("text");
        } else if (type == "search_result") {
            piece = f.text({"title"}).value_or("");
            if (const Json* inner = f.find({"content"}))
                piece += "\n" + blocks_text(*inner, f.at("content"));
        } else if (type == "document") {
            const Json* source = f.object({"source"});
            const std::string kind =
                source ? Fields(*source, f.at("source")).text({"type"}).value_or("") : "";
            if (kind != "text") refuse_media(f.at("source"), "documents other than text");
            piece = Fields(*source, f.at("source")).need_text("data");
        }
        if (!piece.empty()) text += (text.empty() ? "" : "\n") + piece;
    }
    return text;
}

/// Turns blocks into chat messages: text and calls of an assistant in one message; of a user, tool
/// results first, each a message of its own, then the text.
class BlockReader {
public:
    explicit BlockReader(Json& out) : out_(out) {}

    void read(const Json& message, const std::string& path) {
        const Fields f(message, path);
        role_ = f.need_text("role");
        text_.clear();
        thinking_.clear();
        calls_ = Json::array();
        results_ = Json::array();
        const Json* content = f.find({"content"});
        if (!content) f.fail("content", "missing, needed a string or a list of blocks");
        if (content->is_string()) {
            text_ = content->get<std::string>();
        } else if (content->is_array()) {
            for (size_t i = 0; i < content->size(); ++i)
                block(Fields((*content)[i], fmt::format("{}[{}]", f.at("content"), i)));
        } else {
            f.fail("content",
                   fmt::format("found {}, needed a string or a list of blocks", kind_of(*content)));
        }
        emit();
    }

private:
    void block(const Fields& f) {
        const std::string type = f.need_text("type");
        if (type == "text") {
            add_text(f.need_text("text"));
        } else if (type == "thinking") {
            thinking_ += f.text({"thinking"}).value_or("");
        } else if (type == "tool_use") {
            const Json* input = f.find({"input"});
            calls_.push_back({{"id", f.text({"id"}).value_or("")},
                              {"type", "function"},
                              {"function",
                               {{"name", f.need_text("name")},
                                {"arguments", input ? *input : Json::object()}}}});
        } else if (type == "tool_result") {
            const Json* content = f.find({"content"});
            std::string text = content ? blocks_text(*content, f.at("content")) : "";
            if (f.flag({"is_error"}).value_or(false)) text = "Error: " + text;
            results_.push_back({{"role", "tool"},
                                {"tool_call_id", f.text({"tool_use_id"}).value_or("")},
                                {"content", std::move(text)}});
        } else if (type == "image") {
            refuse_media(f.at("type"), "images");
        } else if (type == "document" || type == "search_result") {
            add_text(blocks_text(Json::array({f.json()}), f.at("type")));
        }
        // Others (redacted_thinking, server_tool_use, ...) say nothing to a local model.
    }

    void add_text(const std::string& text) {
        if (!text.empty()) text_ += (text_.empty() ? "" : "\n") + text;
    }

    void emit() {
        for (Json& result : results_) out_.push_back(std::move(result));
        if (role_ == "assistant") {
            Json m = {{"role", "assistant"}, {"content", text_}};
            if (text_.empty() && !calls_.empty()) m["content"] = nullptr;
            if (!calls_.empty()) m["tool_calls"] = std::move(calls_);
            if (!thinking_.empty()) m["reasoning_content"] = thinking_;
            out_.push_back(std::move(m));
            return;
        }
        if (text_.empty() && !results_.empty()) return;
        // Neighbours of one role count as one message.
        if (!out_.empty() && out_.back()["role"] == role_ && results_.empty()) {
            Json& last = out_.back()["content"];
            last = last.get<std::string>() + "\n" + text_;
            return;
        }
        out_.push_back({{"role", role_}, {"content", text_}});
    }

    Json& out_;
    std::string role_, text_, thinking_;
    Json calls_, results_;
};

Json read_conversation(const Fields& f) {
    Json messages = Json::array();
    if (const Json* system = f.find({"system"})) {
        std::string text = blocks_text(*system, "system");
        if (!text.empty()) messages.push_back({{"role", "system"}, {"content", std::move(text)}});
    }
    const Json& given = f.need_array("messages");
    if (given.empty()) f.fail("messages", "found an empty list, needed at least one message");
    BlockReader reader(messages);
    for (size_t i = 0; i < given.size(); ++i) reader.read(given[i], fmt::format("messages[{}]", i));
    return read_chat_messages(messages, "messages");
}

// Tools without a schema run on the provider's servers: there are none here.
std::vector<ToolSpec> read_own_tools(const Fields& f) {
    const Json* tools = f.array({"tools"});
    if (!tools) return {};
    Json own = Json::array();
    for (const Json& tool : *tools)
        if (!tool.is_object() || tool.contains("input_schema")) {
            own.push_back(tool);
            if (tool.is_object()) own.back()["type"] = "function";
        }
    return read_tools(own, "tools");
}

}  // namespace

GenerationRequest read_messages(const Json& request, const RequestDefaults& defaults) {
    const Fields f(request, "");
    GenerationRequest r;
    read_stream_fields(request, r);
    Json own = request;
    // Same names, other meanings.
    own.erase("reasoning");
    own.erase("n");
    r.output = read_controls(own, defaults);
    r.output.n = 1;
    if (r.output.max_tokens == 0) f.fail("max_tokens", "found 0, needed 1 or more");
    r.chat = {{"messages", read_conversation(f)}};
    r.tools = read_own_tools(f);
    r.tool_choice = read_tool_choice(request, r.tools);
    Json vars = Json::object();
    for (const char* key : {"chat_template_kwargs", "template_vars", "enable_thinking"})
        if (const auto it = request.find(key); it != request.end()) vars[key] = *it;
    if (const Json* thinking = f.object({"thinking"})) vars["thinking"] = *thinking;
    if (const Json* config = f.object({"output_config"})) {
        const Fields c(*config, "output_config");
        if (const auto effort = c.text({"effort"})) vars["reasoning_effort"] = *effort;
        if (const Json* format = c.object({"format"}))
            r.output.format = OutputFormat{OutputFormat::Kind::json_schema, "output_config.format",
                                           format->value("schema", Json::object()), true};
    }
    add_template_vars(vars, defaults, r.chat);
    // A last message of the assistant is the beginning of the answer.
    const bool prefill = r.chat["messages"].back()["role"] == "assistant" &&
                         !r.chat["messages"].back().contains("tool_calls");
    r.chat["add_generation_prompt"] = !prefill;
    r.chat["continue_final_message"] = prefill;
    return r;
}

}  // namespace exl3::api
