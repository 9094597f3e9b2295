#pragma once
#include <chrono>
#include <memory>
#include <vector>

#include "cache/page_table.h"
#include "gen/draft_window.h"
#include "gen/loop_detector.h"
#include "gen/mailbox.h"
#include "gen/ngram.h"
#include "gen/text_output.h"

namespace exl3 {

/// A job inside the engine: what was asked, how far it is, and which pages it holds.
struct LiveJob {
    using Clock = std::chrono::steady_clock;

    /// @param prompt  what the model reads: the request's, shortened by token healing
    LiveJob(JobRequest request, std::shared_ptr<Mailbox> mailbox, std::vector<int32_t> prompt,
            TextOutput text);

    JobRequest request;
    std::shared_ptr<Mailbox> mailbox;
    SamplerState state;  ///< state.history is the sequence: prompt, then output
    TextOutput text;
    LoopDetector loop;
    TokenMask first_mask;  ///< token healing: what the first token may be; else empty
    /// Tokens that began a banned phrase, with the position at which each must not come again.
    std::vector<std::pair<int64_t, int32_t>> rejected;
    int64_t posted_prompt = 0;  ///< progress that the submitter knows
    uint64_t arrival = 0;       ///< order of submission
    JobResult result;           ///< counters on the way, complete at the end
    Clock::time_point submitted{}, admitted{}, first_token{};
    int skips = 0;  ///< later jobs that were admitted before this one
    bool ended = false;

    // What the cache holds of the sequence; kept by the scheduler.
    PageName root{};              ///< before the first page
    std::vector<PageName> names;  ///< of whole pages of the sequence, as far as known
    std::vector<int> pages;       ///< physical page of each logical page
    int full_pages = 0;           ///< leading pages that are full, named and never written again
    int fill_begin = 0, fill_end = 0;  ///< logical pages that the planned pass fills
    int64_t computed = 0;              ///< positions whose keys and values are in the pages
    int slot = -1;                     ///< of the recurrent state while the job runs

    // Speculation.
    std::vector<int32_t> drafts;  ///< guesses that the planned pass verifies
    int draft_room = 0;           ///< as many are wanted
    int64_t draft_computed = 0;   ///< positions that the draft model's cache holds
    DraftWindow window;
    std::optional<NgramIndex> ngram;  ///< of the sequence, once it was asked

    int64_t size() const { return static_cast<int64_t>(state.history.size()); }
    /// Only the newest token is left to feed: the job writes.
    bool decoding() const { return size() - computed == 1; }
    int64_t drafted() const { return static_cast<int64_t>(drafts.size()); }
    int64_t prompt_size() const { return static_cast<int64_t>(state.prompt_tokens); }
    /// Tokens produced that count (a healed one replaces a token of the prompt).
    int64_t produced() const { return size() - prompt_size() - (first_mask.words.empty() ? 0 : 1); }
    std::span<const int32_t> output() const {
        return std::span(state.history).subspan(state.prompt_tokens);
    }
    const PageName& name_before(int page) const {
        return page == 0 ? root : names[static_cast<size_t>(page) - 1];
    }
    std::span<const int32_t> page_tokens(int page) const {
        return std::span(state.history)
            .subspan(static_cast<size_t>(page) * kPageTokens, kPageTokens);
    }
    /// Asks for the job to come into the processor's caches, which a pass has emptied; prefetch()
    /// first, and a little later prefetch_parts() for what it points to.
    void prefetch() const;
    void prefetch_parts() const;
    /// Names every whole page of the sequence.
    void name_pages();
    /// Higher priority first, then in order of submission.
    bool before(const LiveJob& o) const {
        if (request.priority != o.request.priority) return request.priority > o.request.priority;
        return arrival < o.arrival;
    }
};

/// Makes a job of a request that was checked. Throws Error{invalid_argument} when it asks for what
/// cannot be combined.
std::unique_ptr<LiveJob> make_job(JobRequest request, const Tokenizer& tokenizer);

}  // namespace exl3
