// Replies of /v1/messages: content blocks, one open at a time.
#include "api/fields.h"
#include "api/reply.h"

namespace exl3::api {
namespace {

using Kind = OutputEvent::Kind;

// Clients send it back and expect something; it stands for nothing here.
constexpr const char* kSignature = "exl3";

// "call_..." ids of ours become ids of this protocol; ids of the model stay.
std::string tool_id(const std::string& id) {
    return id.starts_with("call_") ? "toolu_" + id.substr(5) : id;
}

class MessagesReply : public Reply {
public:
    explicit MessagesReply(ReplyHead head) : Reply(std::move(head)), id_(make_id("msg_")) {}

    std::string begin(const Usage& usage) override {
        if (!head_.stream) return {};
        Json message = envelope();
        message["content"] = Json::array();
        message["stop_reason"] = nullptr;
        message["stop_sequence"] = nullptr;
        message["usage"] = usage_block(usage);
        return event({{"type", "message_start"}, {"message", std::move(message)}});
    }

    std::string end(const Usage& usage) override {
        if (!head_.stream) return {};
        const Choice& c = choices_[0];
        return event({{"type", "message_delta"},
                      {"delta", {{"stop_reason", stop_reason(c)}, {"stop_sequence", stop_text(c)}}},
                      {"usage", usage_block(usage)}}) +
               event({{"type", "message_stop"}});
    }

    std::string fail(const ApiError& error) override {
        Json body = error_body(error, Family::anthropic, head_.request_id);
        return event(body);
    }

    std::string ping() const override { return "event: ping\ndata: {\"type\":\"ping\"}\n\n"; }

    Json whole(const Usage& usage) override {
        const Choice& c = choices_[0];
        Json content = Json::array();
        if (!c.reasoning.empty())
            content.push_back(
                {{"type", "thinking"}, {"thinking", c.reasoning}, {"signature", kSignature}});
        if (!c.content.empty()) content.push_back({{"type", "text"}, {"text", c.content}});
        for (const Call& call : c.calls) {
            auto input = parse_json(call.arguments, "input");
            content.push_back({{"type", "tool_use"},
                               {"id", tool_id(call.id)},
                               {"name", call.name},
                               {"input", input && input->is_object() ? *input : Json::object()}});
        }
        Json message = envelope();
        message["content"] = std::move(content);
        message["stop_reason"] = stop_reason(c);
        message["stop_sequence"] = stop_text(c);
        message["usage"] = usage_block(usage);
        return message;
    }

protected:
    std::string show(int, const OutputEvent& e, std::span<const TokenReport>,
                     const Usage&) override {
        std::string out;
        switch (e.kind) {
            case Kind::reasoning:
                out = open("thinking", {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
                return out += delta({{"type", "thinking_delta"}, {"thinking", e.text}});
            case Kind::content:
                out = open("text", {{"type", "text"}, {"text", ""}});
                return out += delta({{"type", "text_delta"}, {"text", e.text}});
            case Kind::call_start:
                out = close();
                return out += open("tool_use", {{"type", "tool_use"},
                                                {"id", tool_id(e.id)},
                                                {"name", e.name},
                                                {"input", Json::object()}});
            case Kind::call_arguments:
                return delta({{"type", "input_json_delta"}, {"partial_json", e.text}});
            case Kind::call_end: return close();
        }
        return {};
    }
    std::string show_end(int, std::span<const TokenReport>, const Usage&) override {
        return close();
    }

private:
    static std::string event(const Json& data) {
        return sse(data, data["type"].get<std::string>());
    }

    Json envelope() const {
        return {{"id", id_}, {"type", "message"}, {"role", "assistant"}, {"model", head_.model}};
    }

    // Opens a block of this kind unless one is open.
    std::string open(const std::string& kind, const Json& block) {
        if (open_ == kind) return {};
        std::string out = close();
        open_ = kind;
        return out +
               event(
                   {{"type", "content_block_start"}, {"index", index_}, {"content_block", block}});
    }
    std::string delta(Json d) const {
        return event({{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(d)}});
    }
    std::string close() {
        if (open_.empty()) return {};
        std::string out;
        if (open_ == "thinking")
            out = delta({{"type", "signature_delta"}, {"signature", kSignature}});
        out += event({{"type", "content_block_stop"}, {"index", index_++}});
        open_.clear();
        return out;
    }

    static Json usage_block(const Usage& u) {
        return {{"input_tokens", u.prompt_tokens - u.cached_tokens},
                {"cache_creation_input_tokens", 0},
                {"cache_read_input_tokens", u.cached_tokens},
                {"output_tokens", u.completion_tokens}};
    }
    static Json stop_reason(const Choice& c) {
        using Why = ChoiceEnd::Why;
        if (!c.calls.empty()) return "tool_use";
        if (c.end.why == Why::stop_string) return "stop_sequence";
        if (c.end.why == Why::length) return "max_tokens";
        if (c.end.why == Why::context_full) return "model_context_window_exceeded";
        return "end_turn";
    }
    static Json stop_text(const Choice& c) {
        return c.end.why == ChoiceEnd::Why::stop_string ? Json(c.end.stop_string) : Json();
    }

    std::string id_, open_;
    int index_ = 0;
};

}  // namespace

std::unique_ptr<Reply> make_messages_reply(ReplyHead head) {
    return std::make_unique<MessagesReply>(std::move(head));
}

}  // namespace exl3::api
