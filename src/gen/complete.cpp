#include "gen/complete.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace exl3 {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double rate(int64_t count, double seconds) {
    return static_cast<double>(count) / std::max(seconds, 1e-9);
}

/// The text of one completion as it grows.
class Writer {
public:
    Writer(const Tokenizer& tokenizer, const CompletionRequest& request,
           const std::function<void(std::string_view)>& on_text)
        : decoder_(tokenizer, {.skip_special = !request.keep_special, .continues = true}),
          matcher_(request.stop),
          on_text_(on_text) {}

    /// Takes the next token. True: it, or the text it completed, ends the completion.
    bool push(int32_t token, Completion& c) {
        if (matcher_.is_stop_token(token)) {
            c.end = CompletionEnd::stop_token;
            return true;
        }
        release(matcher_.push(decoder_.push(token)), c);
        if (matcher_.stopped()) c.end = CompletionEnd::stop_string;
        return matcher_.stopped();
    }
    /// Releases what was held back. Even that may turn out to end in a stop string.
    void finish(Completion& c) {
        if (matcher_.stopped()) return;
        release(matcher_.push(decoder_.flush()), c);
        if (!matcher_.stopped()) release(matcher_.finish(), c);
        if (matcher_.stopped()) c.end = CompletionEnd::stop_string;
    }

private:
    void release(const std::string& text, Completion& c) {
        if (text.empty()) return;
        c.text += text;
        if (on_text_) on_text_(text);
    }
    StreamDecoder decoder_;
    StopMatcher matcher_;
    const std::function<void(std::string_view)>& on_text_;
};

int32_t draw(const Sampler& sampler, std::span<const float> logits, SamplerState& state,
             TokenConstraint* constraint) {
    const SampleResult r = sampler.sample(logits, state, constraint ? constraint->mask() : nullptr);
    if (r.status != SampleStatus::ok)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("token {}: {}", state.position, describe(r.status)));
    state.accept(r.token);
    if (constraint) constraint->accept(r.token);
    return r.token;
}

// Reads the prompt in pieces, so that a long one can be cancelled. False: it was.
bool read_prompt(TextSession& session, const CompletionRequest& request, int64_t cached) {
    constexpr size_t kPiece = 512;
    const auto prompt = std::span(request.prompt).subspan(static_cast<size_t>(cached));
    for (size_t i = 0; i < prompt.size(); i += kPiece) {
        if (request.cancel && *request.cancel) return false;
        session.feed(prompt.subspan(i, std::min(kPiece, prompt.size() - i)));
    }
    return true;
}

}  // namespace

std::string_view name_of(CompletionEnd end) {
    switch (end) {
        case CompletionEnd::max_new_tokens: return "max_new_tokens";
        case CompletionEnd::stop_token: return "stop_token";
        case CompletionEnd::stop_string: return "stop_string";
        case CompletionEnd::constraint: return "constraint";
        case CompletionEnd::cancelled: return "cancelled";
    }
    return "";
}

double Completion::prefill_tps() const {
    return rate(prompt_tokens - cached_tokens, prefill_seconds);
}

double Completion::decode_tps() const {
    return new_tokens > 1 ? rate(new_tokens - 1, decode_seconds) : 0;
}

int64_t TextSession::keep_common(std::span<const int32_t> prompt) {
    const auto differ = std::mismatch(prompt.begin(), prompt.end(), tokens_.begin(), tokens_.end());
    auto common = static_cast<size_t>(differ.first - prompt.begin());
    if (common == prompt.size() && common > 0) --common;
    const int64_t kept = session_.truncate(static_cast<int64_t>(common));
    tokens_.resize(static_cast<size_t>(kept));
    return kept;
}

void TextSession::feed(std::span<const int32_t> tokens) {
    session_.feed(tokens, logits_);
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

Completion complete(const Model& model, const Tokenizer& tokenizer, Stream& s,
                    const Sampler& sampler, const CompletionRequest& request,
                    const std::function<void(std::string_view)>& on_text) {
    const int64_t length =
        static_cast<int64_t>(request.prompt.size()) + std::max<int64_t>(request.max_new_tokens, 0);
    TextSession session(model, s,
                        {.max_tokens = std::max<int64_t>(length, 1),
                         .rope_length = length,
                         .kv_bits = request.kv_bits});
    return complete(session, tokenizer, sampler, request, on_text);
}

Completion complete(TextSession& session, const Tokenizer& tokenizer, const Sampler& sampler,
                    const CompletionRequest& request,
                    const std::function<void(std::string_view)>& on_text) {
    if (request.prompt.empty())
        throw Error(Errc::invalid_argument, {}, "the prompt has no tokens, needed at least one");
    Completion c{.prompt_tokens = static_cast<int64_t>(request.prompt.size())};
    if (c.prompt_tokens + request.max_new_tokens > session.capacity())
        throw Error(Errc::invalid_argument, {},
                    fmt::format("{} prompt tokens and {} new ones: the context holds {}",
                                c.prompt_tokens, request.max_new_tokens, session.capacity()));
    c.cached_tokens = session.keep_common(request.prompt);
    Writer writer(tokenizer, request, on_text);
    SamplerState state = sampler.start(request.prompt, request.seed);

    auto start = Clock::now();
    const bool read = read_prompt(session, request, c.cached_tokens);
    c.prefill_seconds = seconds_since(start);
    if (!read) {
        c.end = CompletionEnd::cancelled;
        return c;
    }
    start = Clock::now();
    while (c.new_tokens < request.max_new_tokens) {
        if (request.cancel && *request.cancel) {
            c.end = CompletionEnd::cancelled;
            break;
        }
        const int32_t token = draw(sampler, session.logits(), state, request.constraint.get());
        ++c.new_tokens;
        if (writer.push(token, c)) break;
        if (request.constraint && request.constraint->finished()) {
            c.end = CompletionEnd::constraint;
            break;
        }
        if (c.new_tokens < request.max_new_tokens) session.feed({&token, 1});
    }
    c.decode_seconds = seconds_since(start);
    writer.finish(c);
    return c;
}

}  // namespace exl3
