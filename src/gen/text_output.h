#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gen/banned.h"
#include "gen/job.h"
#include "text/tokenizer.h"

namespace exl3 {

/// Turns the tokens of one job into text that is never taken back: incomplete characters, what may
/// become a stop string and what may become a banned phrase wait until they are decided.
class TextOutput {
public:
    struct Options {
        StopConditions stop;
        std::vector<std::string> banned;
        bool keep_special = false;
        int64_t stops_from = 0;  ///< stop strings are looked for from this token on
        std::string healed;      ///< the text begins with it, but it belongs to the prompt
    };
    TextOutput(const Tokenizer& tokenizer, Options options);

    enum class Next : uint8_t {
        go_on,
        stopped,  ///< a stop string is complete
        rewind,   ///< a banned phrase is complete: take tokens back to rewind_to(), call rewind()
    };
    /// Adds the next token, which is no stop token.
    /// @param memory  the sampler's before it drew the token
    Next push(JobToken token, const SamplerMemory& memory);
    /// No token follows. True: what was left open ends in a stop string after all.
    bool finish();
    const std::string& stop_string() const { return stop_.matched(); }

    /// Where the banned phrase began: so many tokens stay.
    size_t rewind_to() const { return rewind_to_; }
    /// The sampler's memory at that place.
    const SamplerMemory& rewind_memory() const;
    /// Takes back the tokens that rewind_to() says. @param kept  those that stay
    void rewind(std::span<const int32_t> kept);
    /// Every token that could stand next begins a banned phrase: lets one pass there.
    void tolerate() { tolerated_.push_back(count()); }

    /// Moves what has become final to the end of an event.
    void release(JobEvent& event);
    bool has_news() const { return final_text_ > 0 || final_tokens_ > 0; }
    /// Asks for its buffers to come into the caches.
    void prefetch() const {
        for (const void* p :
             {static_cast<const void*>(held_.data()), static_cast<const void*>(piece_.data()),
              static_cast<const void*>(pending_.data())})
            __builtin_prefetch(p);
    }
    size_t count() const { return released_tokens_ + pending_.size(); }  ///< tokens taken

private:
    /// A token that is not released yet.
    struct Pending {
        JobToken token;
        size_t end = 0;  ///< bytes of text up to its end; grows while it waits for a character
        SamplerMemory memory;
    };
    void restart();
    void decode(int32_t id);
    Next add(Pending pending, int64_t index);
    Next take_text(bool look_for_stops);
    size_t token_at(size_t byte) const;
    size_t banned_safe() const;
    void settle(size_t text, bool all_tokens);

    Tokenizer tokenizer_;
    Options options_;
    StreamDecoder decoder_;
    const StopMatcher fresh_stop_;
    StopMatcher stop_;
    BannedMatcher banned_;

    std::string piece_;             ///< text of the token that is being added
    std::string held_;              ///< text not released yet
    std::vector<Pending> pending_;  ///< tokens not released yet
    size_t settled_ = 0;            ///< of pending_, those whose text is known
    size_t total_ = 0;              ///< bytes of text so far
    size_t released_ = 0;           ///< of those, released
    size_t released_tokens_ = 0;
    size_t stop_safe_ = 0;                      ///< bytes that no stop string can claim
    size_t scanned_ = 0;                        ///< bytes that went through banned_
    size_t cut_healed_ = 0;                     ///< bytes of options_.healed still to drop
    size_t final_text_ = 0, final_tokens_ = 0;  ///< of held_ and pending_, ready to go
    size_t rewind_to_ = 0;
    std::vector<size_t> tolerated_;  ///< tokens that may begin a banned phrase
    bool stopped_ = false;
    bool replaying_ = false;  ///< the text was searched before
};

}  // namespace exl3
