// text_completion, whole and in chunks.
#include "api/fields.h"
#include "api/reply.h"

namespace exl3::api {
namespace {

int64_t code_points(std::string_view text) {
    int64_t n = 0;
    for (const char c : text) n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    return n;
}

class CompletionReply : public Reply {
public:
    explicit CompletionReply(ReplyHead head)
        : Reply(std::move(head)), id_(make_id("cmpl-")), offsets_(choices_.size()) {
        head_.echo.resize(choices_.size());
        for (size_t i = 0; i < offsets_.size(); ++i) offsets_[i] = code_points(head_.echo[i]);
    }

    std::string begin(const Usage& usage) override {
        std::string out;
        if (!head_.stream) return out;
        for (int i = 0; i < head_.choices; ++i)
            if (const std::string& echo = head_.echo[static_cast<size_t>(i)]; !echo.empty())
                out += chunk(i, echo, nullptr, {}, usage);
        return out;
    }

    std::string end(const Usage& usage) override {
        if (!head_.stream) return {};
        std::string out;
        if (head_.include_usage) {
            Json last = head();
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
        Json reply = head();
        reply["choices"] = Json::array();
        for (int i = 0; i < head_.choices; ++i) {
            const Choice& c = choices_[static_cast<size_t>(i)];
            reply["choices"].push_back(
                {{"index", i},
                 {"text", head_.echo[static_cast<size_t>(i)] + c.content},
                 {"logprobs", head_.logprobs ? logprobs(i, c.tokens) : Json()},
                 {"finish_reason", finish_reason(c)},
                 {"stop_reason",
                  c.end.why == ChoiceEnd::Why::stop_string ? Json(c.end.stop_string) : Json()}});
        }
        reply["usage"] = usage_json(usage);
        return reply;
    }

protected:
    std::string show(int choice, const OutputEvent& e, std::span<const TokenReport> tokens,
                     const Usage& usage) override {
        if (e.kind != OutputEvent::Kind::content) return {};
        return chunk(choice, e.text, nullptr, tokens, usage);
    }
    std::string show_end(int choice, std::span<const TokenReport> tokens,
                         const Usage& usage) override {
        return chunk(choice, "", finish_reason(choices_[static_cast<size_t>(choice)]), tokens,
                     usage);
    }

private:
    Json head() const {
        return {{"id", id_},
                {"object", "text_completion"},
                {"created", head_.created},
                {"model", head_.model},
                {"system_fingerprint", head_.fingerprint}};
    }

    static Json finish_reason(const Choice& c) {
        using Why = ChoiceEnd::Why;
        return c.end.why == Why::length || c.end.why == Why::context_full ? "length" : "stop";
    }

    // Tokens of one choice in order; remembers where the text of the next one begins.
    Json logprobs(int choice, std::span<const TokenReport> tokens) {
        int64_t& offset = offsets_[static_cast<size_t>(choice)];
        Json out = {{"tokens", Json::array()},
                    {"token_logprobs", Json::array()},
                    {"top_logprobs", Json::array()},
                    {"text_offset", Json::array()}};
        for (const TokenReport& t : tokens) {
            out["tokens"].push_back(readable(t.bytes));
            out["token_logprobs"].push_back(finite_logprob(t.logprob));
            Json top = Json::object();
            for (const auto& other : t.top)
                top[readable(other.bytes)] = finite_logprob(other.logprob);
            out["top_logprobs"].push_back(std::move(top));
            out["text_offset"].push_back(offset);
            offset += code_points(t.bytes);
        }
        return out;
    }

    std::string chunk(int choice, const std::string& text, Json finish,
                      std::span<const TokenReport> tokens, const Usage& usage) {
        Json c = head();
        Json inner = {{"index", choice}, {"text", text}};
        inner["logprobs"] = head_.logprobs && !tokens.empty() ? logprobs(choice, tokens) : Json();
        inner["finish_reason"] = std::move(finish);
        c["choices"] = Json::array({std::move(inner)});
        if (head_.continuous_usage)
            c["usage"] = usage_json(usage);
        else if (head_.include_usage)
            c["usage"] = nullptr;
        return sse(c);
    }

    std::string id_;
    std::vector<int64_t> offsets_;  // code points, of the next token of each choice
};

}  // namespace

std::unique_ptr<Reply> make_completion_reply(ReplyHead head) {
    return std::make_unique<CompletionReply>(std::move(head));
}

}  // namespace exl3::api
