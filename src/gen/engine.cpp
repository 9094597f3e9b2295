#include "gen/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace exl3 {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

int pages_of(const GeneratorOptions& o) {
    if (o.cache_tokens < 1 || o.max_jobs < 1 || o.chunk < kPageTokens ||
        o.chunk % kPageTokens != 0 || o.step_tokens < 1)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("generator: found a cache of {} tokens, {} jobs, chunks of {} and "
                                "steps of {} tokens; needed positive numbers, and chunks that are "
                                "multiples of {}",
                                o.cache_tokens, o.max_jobs, o.chunk, o.step_tokens, kPageTokens));
    return pages_for(o.cache_tokens);
}

ForwardLimits forward_limits(const GeneratorOptions& o) {
    const int written = o.max_jobs * (1 + o.max_drafts);
    return {.sequences = o.max_jobs,
            .rows = std::max(o.step_tokens, o.chunk) + written,
            .logit_rows = written,
            .pages = pages_of(o),
            .rope_length = o.max_context > 0 ? o.max_context : o.cache_tokens};
}

std::unique_ptr<StateStore> state_store(Stream& s, const StateLayout& layout,
                                        const GeneratorOptions& o) {
    if (layout.bytes_per_slot() == 0) return nullptr;
    return std::make_unique<StateStore>(s, layout, o.max_jobs, o.state_bytes);
}

std::unique_ptr<DraftModel> draft_model(const Model& model, const Tokenizer& tokenizer, Stream& s,
                                        const GeneratorOptions& o) {
    if (!o.draft_model || o.max_drafts == 0) return nullptr;
    if (state_layout(o.draft_model->spec()).bytes_per_slot() > 0)
        throw Error(Errc::unsupported, {},
                    "draft model: found recurrent layers, whose guesses cannot be taken back; "
                    "needed attention only");
    return std::make_unique<DraftModel>(o.draft_model, s, pages_of(o),
                                        std::min(model.spec().vocab, tokenizer.vocab_size()),
                                        forward_limits(o));
}

}  // namespace

Engine::Engine(const Model& model, const Tokenizer& tokenizer, Device& device,
               const GeneratorOptions& o)
    : model_(model),
      tokenizer_(tokenizer),
      stream_(device.make_stream()),
      cache_(device, kv_layout(model.spec()), pages_of(o), o.kv_bits),
      states_(state_store(*stream_, state_layout(model.spec()), o)),
      max_drafts_(states_ ? 0 : o.max_drafts),
      ngram_(o.ngram),
      forward_(model, *stream_, cache_, forward_limits(o), states_ ? &states_->cache() : nullptr),
      draft_(states_ ? nullptr : draft_model(model, tokenizer, *stream_, o)),
      scheduler_(
          pages_of(o),
          {.max_jobs = o.max_jobs,
           .chunk = o.chunk,
           .step_tokens = o.step_tokens,
           .reuse = o.reuse_prefixes,
           .state_interval = o.state_interval},
          [this](int from, int to, int n) {
              cache_.copy_page(*stream_, from, to, n);
              if (draft_) draft_->copy_page(*stream_, from, to, n);
          },
          states_.get()) {
    const auto jobs = static_cast<size_t>(o.max_jobs);
    plan_.reserve(jobs);
    feeds_.reserve(jobs);
    ended_.reserve(jobs);
    stats_.accepted_at.resize(static_cast<size_t>(max_drafts_));
}

// ---- One step

void Engine::step() {
    const auto start = Clock::now();
    const auto elsewhere = [&] {
        return stats_.model_seconds + stats_.sampler_seconds + stats_.draft_seconds;
    };
    const double others = elsewhere();
    stats_.heartbeat = start;
    end_cancelled();
    choose_windows();
    scheduler_.plan(plan_);
    propose_drafts();
    if (!plan_.empty()) run(plan_);
    sweep();
    stats_.scheduler_seconds += seconds(start, Clock::now()) - (elsewhere() - others);
}

void Engine::end_cancelled() {
    for (const auto& job : scheduler_.running()) job->prefetch();
    for (const auto& job : scheduler_.running()) job->prefetch_parts();
    for (const auto* jobs : {&scheduler_.running(), &scheduler_.waiting()})
        for (const auto& job : *jobs)
            if (job->mailbox->cancelled()) finish(*job, JobEnd::cancelled);
    sweep();
}

void Engine::end_all(JobEnd end, const std::optional<Error>& error) {
    for (const auto* jobs : {&scheduler_.running(), &scheduler_.waiting()})
        for (const auto& job : *jobs) {
            scheduler_.abandon(*job);
            finish(*job, end, error);
        }
    sweep();
}

// ---- Speculation

void Engine::choose_windows() {
    if (max_drafts_ == 0) return;
    for (const auto& job : scheduler_.running()) {
        job->draft_room = 0;
        if (!job->decoding()) continue;
        const int limit = job->request.max_drafts;
        const int most = limit < 0 ? max_drafts_ : std::min(limit, max_drafts_);
        // The last token that is asked for needs no successor.
        const int64_t left = job->request.max_new_tokens - job->produced() - 1;
        job->draft_room = job->window.next(static_cast<int>(std::min<int64_t>(most, left)));
    }
}

// Fills the drafts of the jobs that write, as far as their plans have room.
void Engine::propose_drafts() {
    if (max_drafts_ == 0) return;
    for (const FeedPlan& f : plan_) f.job->drafts.clear();
    const auto start = Clock::now();
    if (draft_) {
        try {
            draft_->read(plan_);
            draft_->propose(plan_);
        } catch (const Error& e) {
            // Without guesses the text is the same.
            log(LogLevel::warn, "the draft model failed: {}", e.what());
            for (const FeedPlan& f : plan_) f.job->drafts.clear();
        }
    }
    for (FeedPlan& f : plan_) {
        LiveJob& job = *f.job;
        if (!job.decoding()) continue;
        if (!draft_ && f.end > job.size()) {
            if (!job.ngram) job.ngram.emplace(ngram_, job.state.history.capacity());
            job.ngram->follow(job.state.history);
            job.ngram->propose(job.state.history, static_cast<size_t>(f.end - job.size()),
                               job.drafts);
        }
        f.end = job.size() + job.drafted();
    }
    stats_.draft_seconds += seconds(start, Clock::now());
}

// Takes jobs that ended out of the scheduler.
void Engine::sweep() {
    if (ended_.empty()) return;
    for (LiveJob* job : ended_) gone_.push_back(scheduler_.remove(*job));
    ended_.clear();
    if (publish_) publish_(stats());
    for (const auto& job : gone_)
        job->mailbox->post([&](JobEvent& event) {
            event.prompt_done = job->posted_prompt;
            job->text.release(event);
            event.result = std::move(job->result);
        });
    gone_.clear();
}

// Runs a pass; if memory does not suffice, what fits of it, and only jobs that do not fit even
// alone fail.
void Engine::run(std::span<const FeedPlan> feeds) {
    std::optional<Error> error;
    if (try_pass(feeds, error)) return;
    // A recurrent state may have moved on already, so that pass cannot be repeated.
    if (error->code() == Errc::out_of_memory && feeds.size() > 1 && !states_) {
        run(feeds.first(feeds.size() / 2));
        run(feeds.subspan(feeds.size() / 2));
        return;
    }
    log(LogLevel::error, "a forward pass failed: {}", error->what());
    stats_.healthy = false;
    for (const FeedPlan& f : feeds) {
        scheduler_.abandon(*f.job);
        finish(*f.job, JobEnd::error, *error);
    }
}

bool Engine::try_pass(std::span<const FeedPlan> feeds, std::optional<Error>& error) {
    feeds_.clear();
    for (const FeedPlan& f : feeds)
        feeds_.push_back({.tokens = f.own_tokens(),
                          .drafts = f.job->drafts,
                          .position = f.begin,
                          .pages = f.job->pages,
                          .slot = f.job->slot,
                          .logit_rows = f.logit_rows()});
    const auto start = Clock::now();
    ConstView logits;
    try {
        logits = forward_.run(feeds_);
    } catch (const Error& e) {
        error = e;
        return false;
    } catch (const std::bad_alloc&) {
        error = Error(Errc::out_of_memory, {}, "a forward pass: the host has no memory left");
        return false;
    }
    stats_.model_seconds += seconds(start, Clock::now());
    stats_.healthy = true;
    ++stats_.steps;
    take_logits(feeds, logits);
    return true;
}

void Engine::take_logits(std::span<const FeedPlan> feeds, ConstView logits) {
    int64_t row = 0;
    for (size_t i = 0; i < feeds.size(); ++i) {
        const FeedPlan& f = feeds[i];
        LiveJob& job = *f.job;
        // While this job draws its token, the next ones arrive.
        if (i + 1 < feeds.size()) feeds[i + 1].job->prefetch_parts();
        if (i + 2 < feeds.size()) feeds[i + 2].job->prefetch();
        stats_.step_tokens += f.rows();
        const int rows = f.logit_rows();
        scheduler_.commit(job, std::min(f.end, job.size()));
        if (rows > 0)
            write(job, slice_rows(logits, row, rows));
        else
            post_news(job);
        row += rows;
    }
}

// ---- What a job does with its logits

// Draws tokens from rows of logits: the row after the sequence, and those after each draft that
// turned out right.
void Engine::write(LiveJob& job, ConstView logits) {
    const int64_t size = job.size();
    const auto drafts = static_cast<size_t>(job.drafted());
    size_t held = 0;
    Accepted last = Accepted::goes_on;
    try {
        begin_writing(job);
        for (size_t r = 0; r <= drafts && !job.ended; ++r) {
            JobToken token;
            const SamplerMemory before = job.state.memory;
            const auto row = std::span(logits.row<float>(static_cast<int64_t>(r)),
                                       static_cast<size_t>(logits.shape[1]));
            if (draw(job, row, token) < 0) break;
            const bool right = r < drafts && token.id == job.drafts[r];
            held += right ? 1 : 0;
            last = accept(job, std::move(token), before);
            if (last != Accepted::goes_on || !right) break;
        }
    } catch (const Error& e) {
        finish(job, JobEnd::error, e);
    } catch (const std::bad_alloc&) {
        finish(job, JobEnd::error, Error(Errc::out_of_memory, {}, "no memory left on the host"));
    }
    if (drafts > 0) count_drafts(job, held);
    // What was drafted rightly is in the pages already.
    if (last != Accepted::taken_back)
        scheduler_.commit(job, std::min(size + static_cast<int64_t>(held), job.size() - 1));
    job.draft_computed = std::min(job.draft_computed, job.computed);
    if (!job.ended) post_news(job);
}

void Engine::count_drafts(LiveJob& job, size_t held) {
    const auto drafts = static_cast<size_t>(job.drafted());
    job.window.learn(static_cast<int>(drafts), static_cast<int>(held));
    job.result.accepted_drafts += static_cast<int64_t>(held);
    job.result.rejected_drafts += static_cast<int64_t>(drafts - held);
    stats_.drafted += static_cast<int64_t>(drafts);
    stats_.accepted_drafts += static_cast<int64_t>(held);
    for (size_t i = 0; i < held; ++i) ++stats_.accepted_at[i];
    job.drafts.clear();
}

void Engine::begin_writing(LiveJob& job) {
    if (job.first_token == Clock::time_point{}) {
        job.first_token = Clock::now();
        stats_.prompt_tokens += job.result.prompt_tokens;
        stats_.cached_tokens += job.result.cached_tokens;
    }
    if (job.request.max_new_tokens <= 0) finish(job, JobEnd::max_new_tokens);
}

// What may come next: the constraint, and at first what heals the last token of the prompt.
const TokenMask* Engine::allowed(LiveJob& job) const {
    if (!job.first_mask.words.empty() && job.output().empty()) return &job.first_mask;
    return job.request.constraint ? job.request.constraint->mask() : nullptr;
}

// The next token, or -1 if the job ended for want of one.
int32_t Engine::draw(LiveJob& job, std::span<const float> logits, JobToken& token) {
    const JobRequest& r = job.request;
    std::vector<int32_t>& banned = job.state.banned;
    const auto sample = [&] {
        const auto start = Clock::now();
        SampleResult drawn = r.sampler->sample(logits, job.state, allowed(job));
        stats_.sampler_seconds += seconds(start, Clock::now());
        return drawn;
    };
    if (job.produced() < r.min_new_tokens) banned = r.stop.tokens;
    const size_t stops = banned.size();
    for (const auto& [position, id] : job.rejected)
        if (position == job.size()) banned.push_back(id);
    SampleResult drawn = sample();
    if (drawn.status == SampleStatus::all_banned && banned.size() > stops) {
        // Whatever can stand here begins a banned phrase, so one has to pass.
        banned.resize(stops);
        job.text.tolerate();
        drawn = sample();
    }
    if (drawn.status == SampleStatus::all_banned && r.constraint) {
        // A text that cannot be continued but may end: min_new_tokens gives way.
        banned.clear();
        drawn = sample();
    }
    banned.clear();
    if (drawn.status != SampleStatus::ok) {
        finish(job, JobEnd::error,
               Error(Errc::invalid_argument, {},
                     fmt::format("token {}: {}", job.size(), describe(drawn.status))));
        return -1;
    }
    token.id = drawn.token;
    token.logprob = drawn.logprob;
    token.top = std::move(drawn.top);
    return drawn.token;
}

Engine::Accepted Engine::accept(LiveJob& job, JobToken token, const SamplerMemory& before) {
    const JobRequest& r = job.request;
    const int32_t id = token.id;
    const bool healed = !job.first_mask.words.empty() && job.output().empty();
    job.state.accept(id);
    if (!healed) {
        ++stats_.new_tokens;
        if (std::binary_search(r.stop.tokens.begin(), r.stop.tokens.end(), id)) {
            job.result.stop_token = id;
            finish(job, JobEnd::stop_token);
            return Accepted::ended;
        }
    }
    if (r.constraint) r.constraint->accept(id);
    switch (job.text.push(std::move(token), before)) {
        case TextOutput::Next::stopped: finish(job, JobEnd::stop_string); return Accepted::ended;
        case TextOutput::Next::rewind: take_back(job); return Accepted::taken_back;
        case TextOutput::Next::go_on: break;
    }
    if (job.loop.push(job.output())) {
        finish(job, JobEnd::loop);
        return Accepted::ended;
    }
    if (r.constraint && r.constraint->finished()) {
        finish(job, JobEnd::constraint);
        return Accepted::ended;
    }
    if (job.produced() >= r.max_new_tokens) {
        finish(job, JobEnd::max_new_tokens);
        return Accepted::ended;
    }
    return Accepted::goes_on;
}

// Goes back to where a banned phrase began; the token that began it is masked there.
void Engine::take_back(LiveJob& job) {
    const size_t stay = job.state.prompt_tokens + job.text.rewind_to();
    const size_t taken = job.state.history.size() - stay;
    const int32_t began = job.state.history[stay];
    if (job.request.constraint) job.request.constraint->rewind(taken);
    job.state.memory = job.text.rewind_memory();
    if (job.ngram) job.ngram->truncate(job.state.history, std::min(stay, job.ngram->size()));
    job.state.rewind(stay);
    // What was rejected further on followed tokens that are gone.
    std::erase_if(job.rejected, [&](const auto& r) { return r.first > job.size(); });
    job.rejected.emplace_back(job.size(), began);
    job.loop.rewind(job.output());
    job.text.rewind(job.output());
    scheduler_.rewind(job, job.size());
}

void Engine::post_news(LiveJob& job) {
    const int64_t done = std::min(job.computed, job.result.prompt_tokens);
    if (!job.text.has_news() && job.posted_prompt == done) return;
    job.posted_prompt = done;
    job.mailbox->post([&](JobEvent& event) {
        event.prompt_done = done;
        job.text.release(event);
    });
}

void Engine::finish(LiveJob& job, JobEnd end, std::optional<Error> error) {
    if (job.ended) return;
    job.ended = true;
    const auto now = Clock::now();
    const bool stop_string = job.text.finish();
    JobResult& result = job.result;
    if (stop_string && end != JobEnd::error && end != JobEnd::cancelled) end = JobEnd::stop_string;
    if (end == JobEnd::stop_string) result.stop_string = job.text.stop_string();
    if (end != JobEnd::stop_token) result.stop_token = -1;
    result.end = end;
    result.error = std::move(error);
    result.new_tokens = std::max<int64_t>(0, job.produced());
    const auto admitted = job.admitted == Clock::time_point{} ? now : job.admitted;
    const auto first = job.first_token == Clock::time_point{} ? now : job.first_token;
    result.queue_seconds = seconds(job.submitted, admitted);
    result.prompt_seconds = seconds(admitted, first);
    result.decode_seconds = seconds(first, now);
    ++(end == JobEnd::error       ? stats_.jobs_failed
       : end == JobEnd::cancelled ? stats_.jobs_cancelled
                                  : stats_.jobs_done);
    job.posted_prompt = std::min(job.computed, result.prompt_tokens);
    ended_.push_back(&job);
}

GeneratorStats Engine::stats() const {
    GeneratorStats s = stats_;
    s.running = static_cast<int64_t>(scheduler_.running().size());
    s.waiting = static_cast<int64_t>(scheduler_.waiting().size());
    s.pages = scheduler_.pages().pages();
    s.pages_in_use = scheduler_.pages().in_use();
    s.pages_cached = scheduler_.pages().cached();
    s.page_evictions = scheduler_.pages().evictions();
    s.preemptions = scheduler_.preemptions();
    return s;
}

}  // namespace exl3
