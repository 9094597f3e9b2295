#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/error.h"
#include "api/output_parser.h"
#include "api/request.h"

namespace exl3::api {

/// What an answer cost, in tokens and seconds.
struct Usage {
    int64_t prompt_tokens = 0;  ///< cached ones included
    int64_t cached_tokens = 0;
    int64_t completion_tokens = 0;  ///< of all answers, reasoning included
    int64_t reasoning_tokens = 0;
    int64_t accepted_draft_tokens = 0, rejected_draft_tokens = 0;
    double queue_seconds = 0, prompt_seconds = 0, completion_seconds = 0;
};

/// How one answer ended.
struct ChoiceEnd {
    enum class Why {
        stop_token,
        stop_string,
        length,
        context_full,
        tool_call
    } why = Why::stop_token;
    std::string stop_string;  ///< the one that matched
};

/// A token of an answer with its log-probability, for requests that ask for it.
struct TokenReport {
    int32_t id = -1;
    std::string bytes;  ///< what it contributes to the text, maybe part of a character
    double logprob = 0;
    struct Other {
        int32_t id = -1;
        std::string bytes;
        double logprob = 0;
    };
    std::vector<Other> top;  ///< most likely first
};

/// What the reply to a request is made of before anything was generated.
struct ReplyHead {
    std::string model;
    std::string fingerprint;  ///< of program and model
    int64_t created = 0;      ///< seconds since 1970
    int choices = 1;
    bool stream = false, include_usage = false, continuous_usage = false;
    bool logprobs = false;
    bool legacy_functions = false;
    bool parse_reasoning = true;
    std::vector<std::string> echo;          ///< per choice, text that comes before it; or empty
    std::vector<std::string> custom_tools;  ///< those whose calls are one text
    Json echoed = Json::object();           ///< fields a Responses object repeats
    std::string request_id;
};

/// Turns what is generated into the protocol's reply: text of server-sent events while streaming,
/// or one JSON document at the end. Both come from the same record, so they agree.
/// Calls: begin, then deltas and one end_choice per choice in any order among choices, then end;
/// or fail at any time instead. Without ReplyHead::stream all but whole() return nothing.
class Reply {
public:
    explicit Reply(ReplyHead head);
    virtual ~Reply() = default;

    /// Events that open the stream. `usage` holds what is known of the prompt.
    virtual std::string begin(const Usage& usage) = 0;
    std::string deltas(int choice, std::span<const OutputEvent> events,
                       std::span<const TokenReport> tokens, const Usage& usage);
    std::string end_choice(int choice, const ChoiceEnd& end, const Usage& usage);
    virtual std::string end(const Usage& usage) = 0;
    /// An error in a stream that has begun.
    virtual std::string fail(const ApiError& error) = 0;
    /// Keeps an idle stream open.
    virtual std::string ping() const { return ": ping\n\n"; }
    /// The reply of a request that is no stream.
    virtual Json whole(const Usage& usage) = 0;

protected:
    struct Call {
        std::string id, name, arguments;
    };
    struct Choice {
        std::string content, reasoning;
        std::vector<Call> calls;
        std::vector<TokenReport> tokens;
        size_t tokens_shown = 0;  ///< in the stream
        bool ended = false;
        ChoiceEnd end;
    };
    /// What is new in a choice, as events of the stream.
    virtual std::string show(int choice, const OutputEvent& event,
                             std::span<const TokenReport> tokens, const Usage& usage) = 0;
    virtual std::string show_end(int choice, std::span<const TokenReport> tokens,
                                 const Usage& usage) = 0;

    bool is_custom(const std::string& tool) const;
    /// The text of a custom tool's call: its member "input".
    static std::string custom_input(const Call& call);

    ReplyHead head_;
    std::vector<Choice> choices_;
};

std::unique_ptr<Reply> make_chat_reply(ReplyHead head);
std::unique_ptr<Reply> make_completion_reply(ReplyHead head);
std::unique_ptr<Reply> make_responses_reply(ReplyHead head);
std::unique_ptr<Reply> make_messages_reply(ReplyHead head);

/// "data: JSON\n\n", with an event line before it if `name` is not empty.
std::string sse(const Json& data, std::string_view name = {});
/// usage as chat completions and completions have it.
Json usage_json(const Usage& usage);
/// -inf and NaN cannot be written in JSON; clients expect a very small number.
double finite_logprob(double logprob);
/// Bytes that are no text alone show as U+FFFD.
std::string readable(std::string_view bytes);

}  // namespace exl3::api
