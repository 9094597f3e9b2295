#pragma once
#include <chrono>
#include <memory>

#include "gen/job.h"
#include "gen/ngram.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace exl3 {

struct GeneratorOptions {
    int64_t cache_tokens = 8192;  ///< capacity shared by all jobs, rounded up to whole pages
    int64_t max_context = 0;      ///< prompt and new tokens of one job; 0: cache_tokens. Also the
                                  ///< length that length-dependent rope tables are chosen by
    KvBits kv_bits;               ///< how keys and values are stored
    int max_jobs = 64;            ///< running at once; the others wait
    int max_waiting = 0;          ///< jobs that may wait; 0: any number
    int chunk = 512;              ///< positions of one prompt per step, a multiple of 256
    int step_tokens = 1024;       ///< positions of all jobs per step: bounds how long those that
                                  ///< write wait for those that read a prompt
    bool reuse_prefixes = true;   ///< pages of earlier prompts and answers serve later ones
    /// Tokens guessed ahead per job and step, at most; each job's window adapts below that. 0: no
    /// speculation. Not used for models with recurrent layers.
    int max_drafts = 0;
    /// Writes the guesses. Null: they are looked up in the job's own text.
    std::shared_ptr<const Model> draft_model;
    NgramIndex::Options ngram{};
    /// Host memory for states of recurrent layers to start later jobs from, and how many tokens
    /// apart they are kept.
    size_t state_bytes = size_t{1} << 30;
    int state_interval = 2048;
};

/// Counters since the start and gauges of now, for /metrics and /health.
struct GeneratorStats {
    int64_t running = 0, waiting = 0;          ///< jobs
    int64_t pages = 0;                         ///< of the cache
    int64_t pages_in_use = 0;                  ///< held by running jobs
    int64_t pages_cached = 0;                  ///< held by no job, with contents to find again
    int64_t page_evictions = 0;                ///< contents given up for something new
    int64_t jobs_done = 0, jobs_failed = 0;    ///< ended; ended by an error
    int64_t jobs_cancelled = 0;                ///< ended by cancel()
    int64_t prompt_tokens = 0;                 ///< of admitted jobs
    int64_t cached_tokens = 0;                 ///< of those, found in the cache
    int64_t new_tokens = 0;                    ///< produced
    int64_t preemptions = 0;                   ///< jobs that gave up their pages for others
    int64_t steps = 0;                         ///< forward passes
    int64_t step_tokens = 0;                   ///< positions that went through the model
    int64_t drafted = 0, accepted_drafts = 0;  ///< speculated tokens; those that became text
    std::vector<int64_t> accepted_at;  ///< [i]: how often the draft at place i of a window held
    double model_seconds = 0, sampler_seconds = 0, draft_seconds = 0;
    double scheduler_seconds = 0;  ///< spent on everything else while there are jobs
    bool healthy = true;           ///< false from a failed pass to the next good one
    /// When the loop last came around. Old while jobs run: the engine hangs.
    std::chrono::steady_clock::time_point heartbeat{};
};

class Mailbox;

/// A job as its submitter sees it. Move-only; letting go of it cancels a job that still runs.
class JobHandle {
public:
    JobHandle() = default;
    explicit JobHandle(std::shared_ptr<Mailbox> mailbox) : mailbox_(std::move(mailbox)) {}
    JobHandle(JobHandle&&) noexcept;
    JobHandle& operator=(JobHandle&&) noexcept;
    ~JobHandle();
    explicit operator bool() const { return mailbox_ != nullptr; }

    /// Replaces `event` by what is new. False: nothing is, and the event is empty. After the event
    /// with the result there is never anything new. One thread at a time.
    bool poll(JobEvent& event);
    /// The same, but waits for news. False: none within `timeout`, or the result was taken.
    bool wait(JobEvent& event, std::chrono::milliseconds timeout);
    /// Ends the job after the step that runs now, with a result that says so. Any thread.
    void cancel();

private:
    std::shared_ptr<Mailbox> mailbox_;
};

/// Many jobs on one model: continuous batching over one paged cache. Owns the engine thread, which
/// is the only one to use the model while it serves. All members may be called from any thread.
///
/// A job's text does not depend on the jobs beside it: noise is a function of seed, position and
/// token, and on the CPU a row's result is that of the row alone.
class Generator {
public:
    /// @param device  runs nothing else while the generator lives
    /// Throws Error{out_of_memory} when the cache does not fit, Error{invalid_argument} for options
    /// out of range.
    Generator(std::shared_ptr<const Model> model, Tokenizer tokenizer, Device& device,
              const GeneratorOptions& options);
    /// Cancels what still runs and waits for the engine thread.
    ~Generator();
    Generator(const Generator&) = delete;
    Generator& operator=(const Generator&) = delete;

    /// Queues a job. Throws Error{invalid_argument} for a request that cannot be served: an empty
    /// prompt, ids outside the vocabulary, more tokens than max_context(). Throws
    /// Error{out_of_memory} when max_waiting jobs wait already.
    JobHandle submit(JobRequest request);
    /// Prompt and new tokens that one job may have.
    int64_t max_context() const;
    GeneratorStats stats() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace exl3
