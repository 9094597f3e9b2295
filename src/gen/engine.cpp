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
    return {.sequences = o.max_jobs,
            .rows = std::max(o.step_tokens, o.chunk) + o.max_jobs,
            .logit_rows = o.max_jobs,
            .pages = pages_of(o),
            .rope_length = o.max_context > 0 ? o.max_context : o.cache_tokens};
}

}  // namespace

Engine::Engine(const Model& model, const Tokenizer& tokenizer, Device& device,
               const GeneratorOptions& o)
    : model_(model),
      tokenizer_(tokenizer),
      stream_(device.make_stream()),
      cache_(device, kv_layout(model.spec()), pages_of(o), o.kv_bits),
      forward_(model, *stream_, cache_, forward_limits(o)),
      scheduler_(pages_of(o),
                 {.max_jobs = o.max_jobs,
                  .chunk = o.chunk,
                  .step_tokens = o.step_tokens,
                  .reuse = o.reuse_prefixes},
                 [this](int from, int to, int n) { cache_.copy_page(*stream_, from, to, n); }) {
    const auto jobs = static_cast<size_t>(o.max_jobs);
    plan_.reserve(jobs);
    feeds_.reserve(jobs);
    ended_.reserve(jobs);
}

// ---- One step

void Engine::step() {
    const auto start = Clock::now();
    const double others = stats_.model_seconds + stats_.sampler_seconds;
    stats_.heartbeat = start;
    end_cancelled();
    scheduler_.plan(plan_);
    if (!plan_.empty()) run(plan_);
    sweep();
    stats_.scheduler_seconds +=
        seconds(start, Clock::now()) - (stats_.model_seconds + stats_.sampler_seconds - others);
}

void Engine::end_cancelled() {
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

// Takes jobs that ended out of the scheduler.
void Engine::sweep() {
    for (LiveJob* job : ended_) scheduler_.remove(*job);
    ended_.clear();
}

// Runs a pass; if memory does not suffice, what fits of it, and only jobs that do not fit even
// alone fail.
void Engine::run(std::span<const FeedPlan> feeds) {
    std::optional<Error> error;
    if (try_pass(feeds, error)) return;
    if (error->code() == Errc::out_of_memory && feeds.size() > 1) {
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
    for (const FeedPlan& f : feeds) {
        const auto own = static_cast<size_t>(std::min(f.end, f.job->size()) - f.begin);
        feeds_.push_back(
            {.tokens = std::span(f.job->state.history).subspan(static_cast<size_t>(f.begin), own),
             .drafts = f.job->drafts,
             .position = f.begin,
             .pages = f.job->pages,
             .logit_rows = f.reaches_end() ? 1 + static_cast<int>(f.job->drafts.size()) : 0});
    }
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
    for (const FeedPlan& f : feeds) {
        LiveJob& job = *f.job;
        stats_.step_tokens += f.rows();
        const int64_t rows = f.reaches_end() ? 1 + static_cast<int64_t>(job.drafts.size()) : 0;
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
    try {
        begin_writing(job);
        for (int64_t r = 0; r < logits.shape[0] && !job.ended; ++r) {
            JobToken token;
            const SamplerMemory before = job.state.memory;
            const auto row = std::span(logits.row<float>(r), static_cast<size_t>(logits.shape[1]));
            if (draw(job, row, token) < 0) break;
            if (!accept(job, std::move(token), before)) break;
        }
    } catch (const Error& e) {
        finish(job, JobEnd::error, e);
    } catch (const std::bad_alloc&) {
        finish(job, JobEnd::error, Error(Errc::out_of_memory, {}, "no memory left on the host"));
    }
    if (!job.ended) post_news(job);
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

bool Engine::accept(LiveJob& job, JobToken token, const SamplerMemory& before) {
    const JobRequest& r = job.request;
    const int32_t id = token.id;
    const bool healed = !job.first_mask.words.empty() && job.output().empty();
    job.state.accept(id);
    if (!healed) {
        ++stats_.new_tokens;
        if (std::binary_search(r.stop.tokens.begin(), r.stop.tokens.end(), id)) {
            job.result.stop_token = id;
            finish(job, JobEnd::stop_token);
            return false;
        }
    }
    if (r.constraint) r.constraint->accept(id);
    switch (job.text.push(std::move(token), before)) {
        case TextOutput::Next::stopped: finish(job, JobEnd::stop_string); return false;
        case TextOutput::Next::rewind: take_back(job); return false;
        case TextOutput::Next::go_on: break;
    }
    if (r.constraint && r.constraint->finished()) {
        finish(job, JobEnd::constraint);
        return false;
    }
    if (job.produced() >= r.max_new_tokens) {
        finish(job, JobEnd::max_new_tokens);
        return false;
    }
    return true;
}

// Goes back to where a banned phrase began; the token that began it is masked there.
void Engine::take_back(LiveJob& job) {
    const size_t stay = job.state.prompt_tokens + job.text.rewind_to();
    const size_t taken = job.state.history.size() - stay;
    const int32_t began = job.state.history[stay];
    if (job.request.constraint) job.request.constraint->rewind(taken);
    job.state.memory = job.text.rewind_memory();
    job.state.rewind(stay);
    // What was rejected further on followed tokens that are gone.
    std::erase_if(job.rejected, [&](const auto& r) { return r.first > job.size(); });
    job.rejected.emplace_back(job.size(), began);
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
    job.mailbox->post([&](JobEvent& event) {
        event.prompt_done = std::min(job.computed, result.prompt_tokens);
        job.text.release(event);
        event.result = result;
    });
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
