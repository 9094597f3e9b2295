#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "gen/live_job.h"
#include "gen/state_store.h"

namespace exl3 {

/// What one job contributes to a forward pass.
struct FeedPlan {
    LiveJob* job = nullptr;
    int64_t begin = 0, end = 0;  ///< positions; past the sequence's own come its drafts
    /// The pass reaches the end of the sequence, so a token can be drawn.
    bool reaches_end() const { return end >= job->size(); }
    int64_t rows() const { return end - begin; }
    /// Rows after which a token can be drawn: that of the sequence's end, and of each draft.
    int logit_rows() const { return reaches_end() ? 1 + static_cast<int>(job->drafts.size()) : 0; }
    /// Tokens of the sequence in the pass, without drafts.
    std::span<const int32_t> own_tokens() const {
        return std::span(job->state.history)
            .subspan(static_cast<size_t>(begin),
                     static_cast<size_t>(std::min(end, job->size()) - begin));
    }
};

struct SchedulerLimits {
    int max_jobs = 64;
    int chunk = 512;            ///< positions of one prompt per pass, a multiple of 256
    int step_tokens = 1024;     ///< positions per pass, unless one chunk alone is more
    bool reuse = true;          ///< full pages get names and are found again
    int state_interval = 2048;  ///< tokens between kept recurrent states, a multiple of 256
};

/// Decides which jobs run and what the next forward pass works on, and keeps the page table. Knows
/// neither model nor sampler.
///
/// Pages are taken when they are needed, not when a job is admitted. When none is left, the running
/// job of the lowest rank gives up its pages and waits again; most of what it had is usually still
/// cached when its turn comes. Rank is priority, then order of submission, so the first job of all
/// always gets on, and nothing can lock up.
///
/// Where layers are recurrent, a job can only start behind pages whose end a state was kept for,
/// and what such a job takes back it reads again from there.
///
/// A prompt is read in chunks that end at multiples of `chunk`, whatever else runs: so its keys and
/// values do not depend on the neighbours.
class Scheduler {
public:
    /// Copies the first tokens of one page to another, at once or in the order of the passes.
    using CopyPage = std::function<void(int from, int to, int tokens)>;
    /// @param states  of recurrent layers; null: the model has none
    Scheduler(int pages, const SchedulerLimits& limits, CopyPage copy_page,
              StateStore* states = nullptr);

    void add(std::unique_ptr<LiveJob> job);
    /// Admits jobs and fills `plan` with the next pass. Empty only if there are no jobs.
    void plan(std::vector<FeedPlan>& plan);
    /// The pass happened: positions below `computed` hold what the sequence says.
    void commit(LiveJob& job, int64_t computed);
    /// The pass did not happen.
    void abandon(LiveJob& job);
    /// The sequence was cut to its first `size` tokens, the last of which is to be fed again.
    void rewind(LiveJob& job, int64_t size);
    /// Takes a job out, running or waiting; its full pages stay to be found again.
    std::unique_ptr<LiveJob> remove(LiveJob& job);

    const std::vector<std::unique_ptr<LiveJob>>& running() const { return running_; }
    const std::vector<std::unique_ptr<LiveJob>>& waiting() const { return waiting_; }
    bool idle() const { return running_.empty() && waiting_.empty(); }
    const PageTable& pages() const { return table_; }
    int64_t preemptions() const { return preemptions_; }

private:
    void admit();
    bool fits(const LiveJob& job) const;
    int known_pages(const LiveJob& job, bool in_use_only) const;
    void adopt_pages(LiveJob& job);
    void adopt_page(LiveJob& job, int page);
    int pages_with_state(const LiveJob& job) const;
    void keep_state(const LiveJob& job);
    void copy_beginning(LiveJob& job);
    bool plan_decode(LiveJob& job, FeedPlan& feed);
    bool plan_prompt(LiveJob& job, int64_t budget, FeedPlan& feed);
    int64_t chunk_end(const LiveJob& job) const;
    bool being_filled(const LiveJob& job) const;
    int take_page(LiveJob& job);
    int64_t take_pages(LiveJob& job, int64_t end);
    void preempt();
    void release_pages(LiveJob& job);

    PageTable table_;
    SchedulerLimits limits_;
    CopyPage copy_page_;
    StateStore* states_;
    std::vector<std::unique_ptr<LiveJob>> running_, waiting_;  ///< both by rank
    int64_t preemptions_ = 0;
};

}  // namespace exl3
