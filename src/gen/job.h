#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gen/stop.h"
#include "sample/constraint.h"
#include "sample/sampler.h"

namespace exl3 {

/// Ends a text that does nothing but repeat itself.
struct LoopLimit {
    int window = 0;       ///< tokens looked at; 0: off
    int repetitions = 2;  ///< the whole window must consist of at least so many equal parts
};

/// What to write after a prompt. Several answers to one prompt are several jobs: they share the
/// pages of the prompt.
struct JobRequest {
    std::vector<int32_t> prompt;   ///< everything the model reads, BOS included; not empty
    int64_t max_new_tokens = 128;  ///< exactly so many come unless something ends the text first;
                                   ///< 0 only reads the prompt
    int64_t min_new_tokens = 0;    ///< before so many, stop tokens are masked and stop strings
                                   ///< are not looked for
    StopConditions stop;           ///< end tokens and stop strings
    std::vector<std::string> banned_strings;  ///< never appear, in whatever case: the text is taken
                                              ///< back to where one began and goes on otherwise
    bool keep_special = false;                ///< special tokens appear in the text
    bool token_healing = false;  ///< the last prompt token may be replaced by a longer one that
                                 ///< begins with it; not together with a constraint
    LoopLimit loop;
    std::shared_ptr<const Sampler> sampler;       ///< required; its params ask for logprobs, too
    uint64_t seed = 0;                            ///< choose_seed(); the n-th choice takes seed + n
    std::shared_ptr<TokenConstraint> constraint;  ///< null: none. The job's own until it ends
    int priority = 0;        ///< higher ones are admitted first and preempted last
    std::string cache_salt;  ///< jobs of different salts share no cached pages
    int max_drafts = -1;     ///< longest speculation window; -1: the generator's, 0: none

    /// Called when poll() has something new after it had nothing. Comes from the engine's thread:
    /// it must not block, throw, or call the generator. Typically it wakes an event loop.
    std::function<void()> on_news;
};

/// A token that has become part of the text.
struct JobToken {
    int32_t id = -1;
    int64_t text_offset = 0;        ///< bytes of the job's text before this token's
    float logprob = 0;              ///< if the sampler's params ask for it
    std::vector<TokenLogprob> top;  ///< the same; best first
};

enum class JobEnd : uint8_t {
    stop_token,
    stop_string,
    max_new_tokens,
    constraint,  ///< the constraint allows nothing more
    loop,        ///< LoopLimit
    cancelled,
    error,
};
/// "stop_token", "max_new_tokens", ...
std::string_view name_of(JobEnd end);

/// How a job ended and what it took.
struct JobResult {
    JobEnd end = JobEnd::cancelled;
    std::optional<Error> error;   ///< with JobEnd::error: what went wrong with this job
    int32_t stop_token = -1;      ///< with JobEnd::stop_token
    std::string stop_string;      ///< with JobEnd::stop_string
    int64_t prompt_tokens = 0;    ///< as submitted
    int64_t cached_tokens = 0;    ///< of the prompt, found in the cache when the job began
    int64_t new_tokens = 0;       ///< produced, the stop token included
    int64_t accepted_drafts = 0;  ///< drafted tokens that became text
    int64_t rejected_drafts = 0;
    int64_t preemptions = 0;    ///< how often the job gave up its pages and read itself again
    double queue_seconds = 0;   ///< waited before it was admitted first
    double prompt_seconds = 0;  ///< from then to the first token (or the end, without one)
    double decode_seconds = 0;  ///< from the first token to the end
};

/// News of a job: everything since the news before, so a slow reader gets longer pieces, not more.
struct JobEvent {
    std::string text;                 ///< final and whole characters: never taken back
    std::vector<JobToken> tokens;     ///< whose text is now part of it, in order; no stop token
    int64_t prompt_done = 0;          ///< prompt tokens read so far, cached ones included
    std::optional<JobResult> result;  ///< present: this is the last event

    void clear();  ///< empties it, keeping its memory
};

}  // namespace exl3
