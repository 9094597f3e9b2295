#include "gen/draft_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace exl3 {
namespace {

// The most likely token; NaN is never one.
int32_t best_token(std::span<const float> logits) {
    size_t best = 0;
    for (size_t i = 1; i < logits.size(); ++i)
        if (!(logits[i] <= logits[best])) best = logits[i] == logits[i] ? i : best;
    return static_cast<int32_t>(best);
}

}  // namespace

DraftModel::DraftModel(std::shared_ptr<const Model> model, Stream& s, int pages, int vocab,
                       const ForwardLimits& limits)
    : model_(std::move(model)),
      cache_(s.device(), kv_layout(model_->spec()), pages),
      forward_(*model_, s, cache_, limits),
      vocab_(vocab) {
    if (model_->spec().vocab < vocab)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("draft model: found a vocabulary of {} tokens, needed that of the "
                                "model, {}",
                                model_->spec().vocab, vocab));
    feeds_.reserve(static_cast<size_t>(limits.sequences));
    jobs_.reserve(static_cast<size_t>(limits.sequences));
}

void DraftModel::read(std::span<const FeedPlan> plan) {
    feeds_.clear();
    for (const FeedPlan& f : plan) {
        if (f.job->decoding()) continue;
        feeds_.push_back({.tokens = f.own_tokens(), .position = f.begin, .pages = f.job->pages});
    }
    if (feeds_.empty()) return;
    forward_.run(feeds_);
    for (const FeedPlan& f : plan)
        if (!f.job->decoding()) f.job->draft_computed = f.end;
}

void DraftModel::propose(std::span<FeedPlan> plan) {
    for (;;) {
        jobs_.clear();
        for (const FeedPlan& f : plan)
            if (f.job->decoding() && f.job->size() + f.job->drafted() < f.end)
                jobs_.push_back(f.job);
        if (jobs_.empty()) return;
        run(jobs_);
    }
}

// One more token for each of the jobs; the first time it also reads what it has missed.
void DraftModel::run(std::span<LiveJob* const> jobs) {
    feeds_.clear();
    for (const LiveJob* job : jobs) {
        const int64_t own = std::max<int64_t>(0, job->size() - job->draft_computed);
        const auto drafts = std::span(job->drafts);
        feeds_.push_back({.tokens = std::span(job->state.history).last(static_cast<size_t>(own)),
                          .drafts = drafts.subspan(static_cast<size_t>(
                              std::max<int64_t>(0, job->draft_computed - job->size()))),
                          .position = job->draft_computed,
                          .pages = job->pages,
                          .logit_rows = 1});
    }
    const ConstView logits = forward_.run(feeds_);
    for (size_t i = 0; i < jobs.size(); ++i) {
        LiveJob& job = *jobs[i];
        const auto row = static_cast<int64_t>(i);
        job.draft_computed = job.size() + job.drafted();
        job.drafts.push_back(best_token({logits.row<float>(row), static_cast<size_t>(vocab_)}));
    }
}

}  // namespace exl3
