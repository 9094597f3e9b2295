#pragma once
#include <memory>
#include <vector>

#include "gen/draft_model.h"
#include "gen/forward.h"
#include "gen/generator.h"
#include "gen/scheduler.h"

namespace exl3 {

/// The generator without its thread: one call, one step. Not thread-safe.
class Engine {
public:
    /// Errors as the constructor of Generator.
    Engine(const Model& model, const Tokenizer& tokenizer, Device& device,
           const GeneratorOptions& options);

    void add(std::unique_ptr<LiveJob> job) {
        job->drafts.reserve(static_cast<size_t>(max_drafts_));
        scheduler_.add(std::move(job));
    }
    bool idle() const { return scheduler_.idle(); }
    /// Ends cancelled jobs, then does one forward pass and draws the tokens it allows. Never
    /// throws on behalf of a job: that job ends with the error.
    void step();
    void cancel_all() { end_all(JobEnd::cancelled, std::nullopt); }
    void fail_all(const Error& error) { end_all(JobEnd::error, error); }

    GeneratorStats stats() const;
    /// `publish` gets the statistics before the ends of jobs are posted, so that whoever learns of
    /// an end finds it counted.
    void on_ends(std::function<void(const GeneratorStats&)> publish) {
        publish_ = std::move(publish);
    }
    int64_t capacity() const { return int64_t{kPageTokens} * scheduler_.pages().pages(); }
    const Scheduler& scheduler() const { return scheduler_; }

private:
    void end_cancelled();
    void choose_windows();
    void propose_drafts();
    void end_all(JobEnd end, const std::optional<Error>& error);
    void run(std::span<const FeedPlan> feeds);
    bool try_pass(std::span<const FeedPlan> feeds, std::optional<Error>& error);
    void take_logits(std::span<const FeedPlan> feeds, ConstView logits);
    void write(LiveJob& job, ConstView logits);
    void count_drafts(LiveJob& job, size_t held);
    void begin_writing(LiveJob& job);
    int32_t draw(LiveJob& job, std::span<const float> logits, JobToken& token);
    const TokenMask* allowed(LiveJob& job) const;
    enum class Accepted : uint8_t { goes_on, ended, taken_back };
    /// Adds a token to the sequence.
    Accepted accept(LiveJob& job, JobToken token, const SamplerMemory& before);
    void take_back(LiveJob& job);
    void finish(LiveJob& job, JobEnd end, std::optional<Error> error = std::nullopt);
    void post_news(LiveJob& job);
    void sweep();

    const Model& model_;
    const Tokenizer& tokenizer_;
    std::unique_ptr<Stream> stream_;
    PagedCache cache_;
    std::unique_ptr<StateStore> states_;  ///< null: the model has no recurrent layers
    int max_drafts_ = 0;
    NgramIndex::Options ngram_;
    Forward forward_;
    std::unique_ptr<DraftModel> draft_;
    Scheduler scheduler_;

    std::vector<FeedPlan> plan_;
    std::vector<Feed> feeds_;
    std::vector<LiveJob*> ended_;                 ///< to be taken out after the step
    std::vector<std::unique_ptr<LiveJob>> gone_;  ///< taken out, their ends still to be posted
    std::function<void(const GeneratorStats&)> publish_;
    GeneratorStats stats_;
};

}  // namespace exl3
