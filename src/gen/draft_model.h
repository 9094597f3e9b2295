#pragma once
#include <memory>
#include <span>

#include "gen/forward.h"
#include "gen/live_job.h"
#include "gen/scheduler.h"

namespace exl3 {

/// A smaller model that writes ahead of the large one. Its cache uses the same pages, so whatever
/// the page table shares, it shares too. What it writes only costs or saves time: the text is the
/// large model's.
class DraftModel {
public:
    /// Throws Error{out_of_memory}, or Error{invalid_argument} if its vocabulary is smaller than
    /// `vocab`.
    DraftModel(std::shared_ptr<const Model> model, Stream& s, int pages, int vocab,
               const ForwardLimits& limits);

    void copy_page(Stream& s, int from, int to, int tokens) const {
        cache_.copy_page(s, from, to, tokens);
    }
    /// Reads the prompts of a pass along.
    void read(std::span<const FeedPlan> plan);
    /// Writes the next tokens of each job that writes into its `drafts`, as many as its plan has
    /// room for.
    void propose(std::span<FeedPlan> plan);

private:
    void run(std::span<LiveJob* const> jobs);

    std::shared_ptr<const Model> model_;
    PagedCache cache_;
    Forward forward_;
    int vocab_;
    std::vector<Feed> feeds_;
    std::vector<LiveJob*> jobs_;
};

}  // namespace exl3
