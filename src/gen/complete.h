#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gen/session.h"
#include "gen/stop.h"
#include "sample/constraint.h"
#include "sample/sampler.h"
#include "text/tokenizer.h"

namespace exl3 {

/// What to write after a prompt.
struct CompletionRequest {
    std::vector<int32_t> prompt;   ///< everything the model reads, BOS included; not empty
    int64_t max_new_tokens = 128;  ///< exactly so many come unless something stops the text first
    StopConditions stop;           ///< end tokens and stop strings
    bool keep_special = false;     ///< special tokens appear in the text
    uint64_t seed = 0;
    KvBits kv_bits{};  ///< of the cache, where the request brings its own
    std::shared_ptr<TokenConstraint> constraint;  ///< what the text must look like; null: anything
    const std::atomic<bool>* cancel = nullptr;    ///< set: the text ends at the next step
};

enum class CompletionEnd : uint8_t {
    max_new_tokens,
    stop_token,
    stop_string,
    constraint,  ///< nothing may follow
    cancelled
};
/// "max_new_tokens", "stop_token", ...
std::string_view name_of(CompletionEnd end);

struct Completion {
    std::string text;
    int64_t prompt_tokens = 0;
    int64_t cached_tokens = 0;  ///< of the prompt, that the session held already
    int64_t new_tokens = 0;     ///< produced, the stop token included
    CompletionEnd end = CompletionEnd::max_new_tokens;
    double prefill_seconds = 0, decode_seconds = 0;
    double prefill_tps() const;  ///< prompt tokens read per second
    double decode_tps() const;   ///< steps after the first token per second; 0 if there were none
};

/// A session that remembers its tokens, so that a prompt which begins like the text before it is
/// read only from where they part: the turns of a conversation.
class TextSession {
public:
    /// Throws Error{out_of_memory} when the cache does not fit.
    TextSession(const Model& model, Stream& s, const SessionOptions& options)
        : session_(model, s, options),
          capacity_(options.max_tokens),
          logits_(static_cast<size_t>(model.spec().vocab)) {}

    int64_t capacity() const { return capacity_; }  ///< tokens
    /// Forgets what does not begin `prompt`, and its last token, which is always read again; more
    /// where Session::truncate does. Returns how many tokens stay.
    int64_t keep_common(std::span<const int32_t> prompt);
    /// Reads tokens; logits() are then those of the last one. Errors as Session::feed.
    void feed(std::span<const int32_t> tokens);
    std::span<const float> logits() const { return logits_; }

private:
    Session session_;
    int64_t capacity_;
    std::vector<int32_t> tokens_;
    std::vector<float> logits_;
};

/// Writes a completion of one prompt, alone on its stream. Text is handed to `on_text` as soon as
/// it is final: whole characters, nothing that may still become a stop string. Throws
/// Error{invalid_argument} for an empty prompt, an id outside the vocabulary or a sampler that
/// leaves no token, Error{out_of_memory} when the cache does not fit.
Completion complete(const Model& model, const Tokenizer& tokenizer, Stream& s,
                    const Sampler& sampler, const CompletionRequest& request,
                    const std::function<void(std::string_view)>& on_text = {});

/// The same on a session that goes on from prompt to prompt. Throws Error{invalid_argument} when
/// prompt and new tokens exceed its capacity.
Completion complete(TextSession& session, const Tokenizer& tokenizer, const Sampler& sampler,
                    const CompletionRequest& request,
                    const std::function<void(std::string_view)>& on_text = {});

}  // namespace exl3
