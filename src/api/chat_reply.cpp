// chat.completion and chat.completion.chunk.
#include "api/fields.h"
#include "api/reply.h"

namespace exl3::api {
namespace {

using Kind = OutputEvent::Kind;

Json bytes_json(std::string_view bytes) {
    Json list = Json::array();
    for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
    return list;
}

Json token_json(std::string_view bytes, int32_t id, double logprob) {
    return {{"token", readable(bytes)},
            {"logprob", finite_logprob(logprob)},
            {"bytes", bytes_json(bytes)},
            {"token_id", id}};
}

Json logprobs_json(std::span<const TokenReport> tokens) {
    Json content = Json::array();
    for (const TokenReport& t : tokens) {
        Json entry = token_json(t.bytes, t.id, t.logprob);
        entry["top_logprobs"] = Json::array();
        for (const auto& other : t.top)
            entry["top_logprobs"].push_back(token_json(other.bytes, other.id, other.logprob));
        content.push_back(std::move(entry));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
}

class ChatReply : public Reply {
public:
    explicit ChatReply(ReplyHead head) : Reply(std::move(head)), id_(make_id("chatcmpl-")) {}

    std::string begin(const Usage& usage) override {
        std::string out;
        if (!head_.stream) return out;
        for (int i = 0; i < head_.choices; ++i)
            out += chunk(i, {{"role", "assistant"}, {"content", ""}}, nullptr, {}, usage);
        return out;
    }

    std::string end(const Usage& usage) override {
        if (!head_.stream) return {};
        std::string out;
        if (head_.include_usage) {
            Json last = head("chat.completion.chunk");
            last["choices"] = Json::array();
            last["usage"] = usage_json(usage);
            out = sse(last);
        }
        return out + "data: [DONE]\n\n";
    }

    std::string fail(const ApiError& error) override {
        return sse(error_body(error, Family::openai, head_.request_id)) + "data: [DONE]\n\n";
    }

    Json whole(const Usage& usage) override {
        Json reply = head("chat.completion");
        reply["choices"] = Json::array();
        for (int i = 0; i < head_.choices; ++i) {
            const Choice& c = choices_[static_cast<size_t>(i)];
            reply["choices"].push_back(
                {{"index", i},
                 {"message", message(c)},
                 {"logprobs", head_.logprobs ? logprobs_json(c.tokens) : Json()},
                 {"finish_reason", finish_reason(c)},
                 {"stop_reason", stop_reason(c)}});
        }
        reply["usage"] = usage_json(usage);
        return reply;
    }

protected:
    std::string show(int choice, const OutputEvent& e, std::span<const TokenReport> tokens,
                     const Usage& usage) override {
        const auto delta = [&](Json d) {
            return chunk(choice, std::move(d), nullptr, tokens, usage);
        };
        switch (e.kind) {
            case Kind::reasoning:
                return delta({{"reasoning_content", e.text}, {"reasoning", e.text}});
            case Kind::content: return delta({{"content", e.text}});
            case Kind::call_start:
                if (head_.legacy_functions)
                    return delta({{"function_call", {{"name", e.name}, {"arguments", ""}}}});
                return delta(
                    {{"tool_calls",
                      Json::array({{{"index", e.call},
                                    {"id", e.id},
                                    {"type", "function"},
                                    {"function", {{"name", e.name}, {"arguments", ""}}}}})}});
            case Kind::call_arguments:
                if (head_.legacy_functions)
                    return delta({{"function_call", {{"arguments", e.text}}}});
                return delta(
                    {{"tool_calls",
                      Json::array({{{"index", e.call}, {"function", {{"arguments", e.text}}}}})}});
            case Kind::call_end: break;
        }
        return {};
    }

    std::string show_end(int choice, std::span<const TokenReport> tokens,
                         const Usage& usage) override {
        const Choice& c = choices_[static_cast<size_t>(choice)];
        return chunk(choice, Json::object(), finish_reason(c), tokens, usage);
    }

private:
    Json head(const char* object) const {
        return {{"id", id_},
                {"object", object},
                {"created", head_.created},
                {"model", head_.model},
                {"system_fingerprint", head_.fingerprint}};
    }

    std::string chunk(int choice, Json delta, Json finish, std::span<const TokenReport> tokens,
                      const Usage& usage) const {
        Json c = head("chat.completion.chunk");
        Json inner = {{"index", choice}, {"delta", std::move(delta)}};
        inner["logprobs"] = head_.logprobs && !tokens.empty() ? logprobs_json(tokens) : Json();
        inner["finish_reason"] = std::move(finish);
        c["choices"] = Json::array({std::move(inner)});
        if (head_.continuous_usage)
            c["usage"] = usage_json(usage);
        else if (head_.include_usage)
            c["usage"] = nullptr;
        return sse(c);
    }

    Json finish_reason(const Choice& c) const {
        if (!c.calls.empty()) return head_.legacy_functions ? "function_call" : "tool_calls";
        using Why = ChoiceEnd::Why;
        return c.end.why == Why::length || c.end.why == Why::context_full ? "length" : "stop";
    }
    static Json stop_reason(const Choice& c) {
        return c.end.why == ChoiceEnd::Why::stop_string ? Json(c.end.stop_string) : Json();
    }

    Json message(const Choice& c) const {
        Json m = {{"role", "assistant"}};
        m["content"] = c.content.empty() && !c.calls.empty() ? Json() : Json(c.content);
        m["refusal"] = nullptr;
        if (!c.reasoning.empty()) {
            m["reasoning_content"] = c.reasoning;
            m["reasoning"] = c.reasoning;
        }
        if (c.calls.empty()) return m;
        if (head_.legacy_functions) {
            m["function_call"] = {{"name", c.calls[0].name}, {"arguments", c.calls[0].arguments}};
            return m;
        }
        m["tool_calls"] = Json::array();
        for (const Call& call : c.calls)
            m["tool_calls"].push_back(
                {{"id", call.id},
                 {"type", "function"},
                 {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
        return m;
    }

    std::string id_;
};

}  // namespace

std::unique_ptr<Reply> make_chat_reply(ReplyHead head) {
    return std::make_unique<ChatReply>(std::move(head));
}

}  // namespace exl3::api
