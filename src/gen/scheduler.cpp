#include "gen/scheduler.h"

#include <algorithm>

#include "cache/paged_cache.h"

namespace exl3 {
namespace {

// How often a waiting job may be overtaken by smaller ones.
constexpr int kMaxSkips = 4;
// Waiting jobs that are tried when they do not fit; bounds the time a step takes.
constexpr int kMostTried = 16;
// A shorter beginning of a page is not worth copying.
constexpr int kLeastCopied = 2;

void insert_by_rank(std::vector<std::unique_ptr<LiveJob>>& jobs, std::unique_ptr<LiveJob> job) {
    const auto at = std::find_if(jobs.rbegin(), jobs.rend(),
                                 [&](const auto& other) { return other->before(*job); });
    jobs.insert(at.base(), std::move(job));
}

// The end of the last whole page of the prompt, from which a next turn can start.
int64_t last_boundary(const LiveJob& job) {
    return (job.prompt_size() - 1) / kPageTokens * kPageTokens;
}

}  // namespace

Scheduler::Scheduler(int pages, const SchedulerLimits& limits, CopyPage copy_page,
                     StateStore* states)
    : table_(pages), limits_(limits), copy_page_(std::move(copy_page)), states_(states) {
    EXL3_CHECK(limits.chunk > 0 && limits.chunk % kPageTokens == 0 && limits.max_jobs > 0);
    running_.reserve(static_cast<size_t>(limits.max_jobs));
}

void Scheduler::add(std::unique_ptr<LiveJob> job) {
    insert_by_rank(waiting_, std::move(job));
}

// ---- Admission

// Leading pages of the sequence that the cache holds; its last token is always read again.
int Scheduler::known_pages(const LiveJob& job, bool in_use_only) const {
    if (!limits_.reuse) return 0;
    const auto most = static_cast<int>((job.size() - 1) / kPageTokens);
    int n = 0;
    for (; n < most; ++n) {
        const int page = table_.find(job.names[static_cast<size_t>(n)]);
        if (page == PageTable::kNone || (in_use_only && table_.users(page) == 0)) break;
    }
    return n;
}

// Whether the job can read its prompt and begin to write without taking pages from others. What
// the running jobs will soon need counts as taken, with some room to grow.
bool Scheduler::fits(const LiveJob& job) const {
    if (running_.empty()) return true;
    int64_t available = table_.available() - 1 - static_cast<int64_t>(running_.size()) / 4;
    for (const auto& other : running_)
        available -= std::max<int64_t>(
            0, pages_for(other->size() + 1) - static_cast<int64_t>(other->pages.size()));
    return available >= pages_for(job.size() + 1) - known_pages(job, true);
}

void Scheduler::admit() {
    int tried = 0;
    for (size_t i = 0; i < waiting_.size() && tried < kMostTried;) {
        if (static_cast<int>(running_.size()) >= limits_.max_jobs) return;
        LiveJob& job = *waiting_[i];
        if (!fits(job)) {
            if (job.skips >= kMaxSkips) return;
            ++i;
            ++tried;
            continue;
        }
        for (size_t k = 0; k < i; ++k) ++waiting_[k]->skips;
        auto admitted = std::move(waiting_[i]);
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
        if (job.admitted == LiveJob::Clock::time_point{}) job.admitted = LiveJob::Clock::now();
        job.skips = 0;
        insert_by_rank(running_, std::move(admitted));
        if (states_) job.slot = states_->take_slot();
        adopt_pages(job);
    }
}

// ---- Pages

void Scheduler::preempt() {
    auto job = std::move(running_.back());
    running_.pop_back();
    release_pages(*job);
    if (states_) states_->release_slot(job->slot);
    job->drafts.clear();
    job->name_pages();
    ++job->result.preemptions;
    ++preemptions_;
    insert_by_rank(waiting_, std::move(job));
}

// A page to write to; jobs of lower rank give up theirs if need be.
int Scheduler::take_page(LiveJob& job) {
    int page = table_.take();
    while (page == PageTable::kNone && running_.back().get() != &job) {
        preempt();
        page = table_.take();
    }
    return page;
}

// Takes pages for positions below `end`; returns up to where there are some.
int64_t Scheduler::take_pages(LiveJob& job, int64_t end) {
    while (static_cast<int64_t>(job.pages.size()) * kPageTokens < end) {
        const int page = take_page(job);
        if (page == PageTable::kNone) break;
        job.pages.push_back(page);
    }
    return std::min(end, static_cast<int64_t>(job.pages.size()) * kPageTokens);
}

void Scheduler::release_pages(LiveJob& job) {
    const auto full = static_cast<size_t>(job.full_pages);
    // The tail first, so that it is also given up first.
    while (job.pages.size() > full + 1) {
        table_.release(job.pages.back());
        job.pages.pop_back();
    }
    if (job.pages.size() == full + 1) {
        const int64_t begin = int64_t{job.full_pages} * kPageTokens;
        const auto held = static_cast<size_t>(
            limits_.reuse ? std::min<int64_t>(job.computed - begin, kPageTokens - 1) : 0);
        table_.release_beginning(
            job.pages.back(), job.name_before(job.full_pages),
            std::span(job.state.history).subspan(static_cast<size_t>(begin), held));
        job.pages.pop_back();
    }
    table_.release_all(job.pages);
    job.pages.clear();
    job.full_pages = 0;
    job.computed = 0;
    job.draft_computed = 0;
}

void Scheduler::adopt_page(LiveJob& job, int page) {
    table_.share(page);
    job.pages.push_back(page);
    ++job.full_pages;
    job.computed += kPageTokens;
    job.draft_computed = job.computed;
    if (job.result.preemptions == 0 && job.computed <= job.prompt_size())
        job.result.cached_tokens += kPageTokens;
}

// Leading pages of the sequence that are full, as far as the last that ends with a kept state.
int Scheduler::pages_with_state(const LiveJob& job) const {
    int n = known_pages(job, false);
    while (n > 0 && !states_->has(job.names[static_cast<size_t>(n) - 1])) --n;
    for (int i = 0; i < n; ++i)
        if (!table_.full(table_.find(job.names[static_cast<size_t>(i)]))) return 0;
    return n;
}

// Takes the pages at the job's place that others have filled.
void Scheduler::adopt_pages(LiveJob& job) {
    if (!limits_.reuse) return;
    if (states_) {
        if (job.computed > 0 || !job.pages.empty()) return;
        const int n = pages_with_state(job);
        for (int i = 0; i < n; ++i) adopt_page(job, table_.find(job.names[static_cast<size_t>(i)]));
        if (n > 0) states_->restore(job.names[static_cast<size_t>(n) - 1], job.slot);
        return;
    }
    const int64_t most = (job.size() - 1) / kPageTokens;
    while (job.computed % kPageTokens == 0 && job.full_pages < most &&
           static_cast<int64_t>(job.pages.size()) * kPageTokens == job.computed) {
        const int page = table_.find(job.names[static_cast<size_t>(job.full_pages)]);
        if (page == PageTable::kNone || !table_.full(page)) return;
        adopt_page(job, page);
    }
}

// Where the next page is not known, another one may begin in the same way.
void Scheduler::copy_beginning(LiveJob& job) {
    if (!limits_.reuse || states_ || job.computed % kPageTokens != 0 ||
        static_cast<int64_t>(job.pages.size()) * kPageTokens != job.computed)
        return;
    const auto begin = static_cast<size_t>(job.computed);
    const auto wanted =
        std::span(job.state.history)
            .subspan(begin, std::min<size_t>(kPageTokens, job.state.history.size() - 1 - begin));
    const auto found = table_.find_beginning(job.name_before(job.full_pages), wanted);
    if (found.tokens < kLeastCopied) return;
    table_.share(found.page);
    int page = table_.take();
    if (page != PageTable::kNone) {
        copy_page_(found.page, page, found.tokens);
        table_.release(found.page);
    } else if (table_.users(found.page) == 1) {
        page = found.page;  // nobody else's, so it can be written on from there
        table_.clear(page);
    } else {
        table_.release(found.page);
        return;
    }
    job.pages.push_back(page);
    job.computed += found.tokens;
    job.draft_computed = job.computed;
    if (job.result.preemptions == 0 && job.computed <= job.prompt_size())
        job.result.cached_tokens += found.tokens;
}

// ---- The next pass

bool Scheduler::plan_decode(LiveJob& job, FeedPlan& feed) {
    const int64_t end = take_pages(job, job.size() + job.draft_room);
    if (end < job.size()) return false;
    job.fill_begin = job.fill_end = 0;
    feed = {&job, job.computed, end};
    return true;
}

// Another job fills the next page in this very pass.
bool Scheduler::being_filled(const LiveJob& job) const {
    const int64_t page = job.computed / kPageTokens;
    if (!limits_.reuse || states_ || job.computed % kPageTokens != 0 ||
        static_cast<int64_t>(job.names.size()) <= page)
        return false;
    const int found = table_.find(job.names[static_cast<size_t>(page)]);
    return found != PageTable::kNone && !table_.full(found);
}

// Where the next chunk ends: at a multiple of the chunk, the end of the sequence, or before a page
// that is known already.
int64_t Scheduler::chunk_end(const LiveJob& job) const {
    const int64_t end = std::min(job.size(), (job.computed / limits_.chunk + 1) * limits_.chunk);
    if (!limits_.reuse) return end;
    if (states_) return job.computed < last_boundary(job) ? std::min(end, last_boundary(job)) : end;
    for (int64_t page = job.computed / kPageTokens + 1; (page + 1) * kPageTokens <= end; ++page)
        if (table_.find(job.names[static_cast<size_t>(page)]) != PageTable::kNone)
            return page * kPageTokens;
    return end;
}

bool Scheduler::plan_prompt(LiveJob& job, int64_t budget, FeedPlan& feed) {
    adopt_pages(job);
    if (being_filled(job)) return false;
    copy_beginning(job);
    int64_t end = chunk_end(job);
    if (end - job.computed > budget) return false;
    end = take_pages(job, end);
    if (end <= job.computed) return false;
    feed = {&job, job.computed, end};
    job.fill_begin = static_cast<int>((job.computed + kPageTokens - 1) / kPageTokens);
    job.fill_end = std::max(job.fill_begin, static_cast<int>(end / kPageTokens));
    if (!limits_.reuse) job.fill_end = job.fill_begin;
    for (int p = job.fill_begin; p < job.fill_end; ++p)
        table_.begin_fill(job.pages[static_cast<size_t>(p)], job.names[static_cast<size_t>(p)]);
    return true;
}

void Scheduler::plan(std::vector<FeedPlan>& plan) {
    plan.clear();
    admit();
    int64_t budget = limits_.step_tokens;
    for (const auto& job : running_)
        if (job->decoding()) budget -= 1 + job->draft_room;
    bool reads = false;  // the first chunk always goes in
    // A job that is planned can still preempt those after it, never one before it.
    for (size_t i = 0; i < running_.size(); ++i) {
        LiveJob& job = *running_[i];
        FeedPlan feed;
        if (job.decoding()) {
            if (plan_decode(job, feed)) plan.push_back(feed);
        } else if (plan_prompt(job, reads ? budget : limits_.chunk, feed)) {
            budget -= feed.rows();
            reads = true;
            plan.push_back(feed);
        }
    }
    EXL3_CHECK(!plan.empty() || idle(), "jobs that cannot get on");
}

void Scheduler::commit(LiveJob& job, int64_t computed) {
    job.computed = computed;
    job.fill_begin = job.fill_end = 0;
    if (!limits_.reuse) return;
    while (int64_t{job.full_pages + 1} * kPageTokens <= computed) {
        const int p = job.full_pages;
        if (job.names.size() == static_cast<size_t>(p)) job.name_pages();
        int& page = job.pages[static_cast<size_t>(p)];
        page = table_.finish_fill(page, job.name_before(p), job.names[static_cast<size_t>(p)],
                                  job.page_tokens(p));
        ++job.full_pages;
    }
    if (states_) keep_state(job);
}

// States exist only between passes, so this is the moment to keep one.
void Scheduler::keep_state(const LiveJob& job) {
    if (job.computed == 0 || job.computed % kPageTokens != 0) return;
    if (job.computed == last_boundary(job) || job.computed % limits_.state_interval == 0)
        states_->save(job.names[static_cast<size_t>(job.full_pages) - 1], job.slot);
}

void Scheduler::abandon(LiveJob& job) {
    for (int p = job.fill_begin; p < job.fill_end; ++p)
        table_.drop_fill(job.pages[static_cast<size_t>(p)]);
    job.fill_begin = job.fill_end = 0;
}

void Scheduler::rewind(LiveJob& job, int64_t size) {
    job.names.resize(std::min(job.names.size(), static_cast<size_t>(size / kPageTokens)));
    const int64_t stay = std::min(job.computed, size - 1);
    const auto page = static_cast<int>(stay / kPageTokens);
    job.computed = stay;
    if (page < job.full_pages) {
        // The page is full and may be shared: it is left, and what is needed of it copied later.
        while (static_cast<int>(job.pages.size()) > page) {
            table_.release(job.pages.back());
            job.pages.pop_back();
        }
        job.full_pages = page;
        job.computed = int64_t{page} * kPageTokens;
        job.name_pages();
    }
    job.draft_computed = std::min(job.draft_computed, job.computed);
    // A recurrent state cannot be cut back.
    if (states_) release_pages(job);
}

std::unique_ptr<LiveJob> Scheduler::remove(LiveJob& job) {
    for (auto* jobs : {&running_, &waiting_}) {
        const auto at = std::find_if(jobs->begin(), jobs->end(),
                                     [&](const auto& j) { return j.get() == &job; });
        if (at == jobs->end()) continue;
        auto removed = std::move(*at);
        jobs->erase(at);
        if (states_ && jobs == &running_) states_->release_slot(job.slot);
        release_pages(job);
        return removed;
    }
    EXL3_CHECK(false, "a job that the scheduler does not know");
    return nullptr;
}

}  // namespace exl3
