#include "server/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "api/fields.h"
#include "base/log.h"

namespace exl3::server {
namespace {

using api::ApiError;
using Clock = std::chrono::steady_clock;
using Why = api::ChoiceEnd::Why;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The jobs of one request and the reply they make. Everything but the wake-ups happens on the I/O
/// thread once it was started, so it needs no lock.
class Generation : public std::enable_shared_from_this<Generation> {
public:
    Generation(Service& service, const Call& call, std::shared_ptr<LoadedModel> model,
               PreparedRequest prepared, Protocol protocol)
        : service_(service),
          exchange_(call.exchange),
          family_(call.family),
          model_(std::move(model)),
          prepared_(std::move(prepared)),
          protocol_(std::move(protocol)) {}

    void start();

private:
    struct Choice {
        Choice(api::OutputParser p, const api::Usage& u) : parser(std::move(p)), usage(u) {}
        JobHandle job;
        api::OutputParser parser;
        api::Usage usage;  ///< of this job alone
        bool ended = false, cut = false;
        size_t prompt = 0;  ///< which
        int number = 0;     ///< among the answers to it
        int64_t limit = 0;  ///< tokens it may have
        /// With a limit on reasoning, the first job ends there and a second one goes on.
        bool goes_on = false;
        std::vector<int32_t> written;  ///< then: what there is so far
        Clock::time_point last_piece;
        bool began = false;
    };
    /// What the engine's thread touches: it must not own the generation, whose end may not happen
    /// there.
    struct Waker {
        std::weak_ptr<Generation> generation;
        std::shared_ptr<Exchange> exchange;
        std::atomic<bool> posted = false;

        static void wake(const std::shared_ptr<Waker>& self) {
            if (self->posted.exchange(true)) return;
            self->exchange->post([self] {
                self->posted = false;
                if (const auto g = self->generation.lock()) g->drain();
            });
        }
    };

    api::ReplyHead reply_head() const;
    JobRequest job_for(size_t prompt, int choice, const std::shared_ptr<Waker>& waker) const;
    void submit_all();
    bool go_on(size_t index);
    void drain();
    void take(size_t index, JobEvent& event);
    void finish_choice(size_t index, const JobResult& result);
    void finish();
    void fail(const ApiError& error);
    void cancel();
    void close();
    api::Usage total() const;
    std::vector<api::TokenReport> reports(const std::vector<JobToken>& tokens) const;
    const api::OutputControls& output() const { return prepared_.request.output; }

    Service& service_;
    std::shared_ptr<Exchange> exchange_;
    api::Family family_;
    std::shared_ptr<LoadedModel> model_;
    PreparedRequest prepared_;
    Protocol protocol_;
    std::unique_ptr<api::Reply> reply_;
    std::shared_ptr<Waker> waker_;
    std::vector<Choice> choices_;
    std::shared_ptr<Generation> self_;  // while jobs run
    uint64_t running_ = 0;
    Clock::time_point arrived_ = Clock::now();
    double first_token_seconds_ = 0;
    JobEvent event_;
    std::atomic<bool> shut_down_ = false;
};

api::ReplyHead Generation::reply_head() const {
    const api::GenerationRequest& r = prepared_.request;
    api::ReplyHead h;
    h.model = model_->id;
    const auto& aliases = service_.config().model.aliases;
    if (std::find(aliases.begin(), aliases.end(), r.model) != aliases.end()) h.model = r.model;
    h.fingerprint = model_->fingerprint;
    h.created = std::chrono::duration_cast<std::chrono::seconds>(
                    std::chrono::system_clock::now().time_since_epoch())
                    .count();
    h.choices = static_cast<int>(choices_.size());
    h.stream = r.stream;
    h.include_usage = r.include_usage;
    h.continuous_usage = r.continuous_usage;
    h.logprobs = r.output.logprobs;
    h.legacy_functions = r.legacy_functions;
    h.parse_reasoning = r.parse_reasoning;
    h.echoed = r.echoed;
    h.request_id = exchange_->request().id;
    for (const api::ToolSpec& t : r.tools)
        if (t.custom) h.custom_tools.push_back(t.name);
    if (r.echo)
        for (size_t i = 0; i < choices_.size(); ++i)
            h.echo.push_back(prepared_.echo[i / static_cast<size_t>(r.output.n)]);
    return h;
}

JobRequest Generation::job_for(size_t prompt, int choice,
                               const std::shared_ptr<Waker>& waker) const {
    const api::OutputControls& o = output();
    JobRequest job;
    job.prompt = prepared_.prompts[prompt];
    job.max_new_tokens =
        room_for_answer(*model_, prepared_.request, job.prompt.size(), protocol_.clamp);
    job.min_new_tokens = std::min(o.min_tokens, job.max_new_tokens);
    job.stop.tokens = o.stop_tokens;
    SamplerParams params = o.sampler;
    if (o.ignore_eos)
        params.banned_tokens.insert(params.banned_tokens.end(), model_->ends.begin(),
                                    model_->ends.end());
    else
        job.stop.tokens.insert(job.stop.tokens.end(), model_->ends.begin(), model_->ends.end());
    job.stop.strings = o.stop;
    job.stop.keep_string = o.keep_stop;
    job.banned_strings = o.banned_strings;
    job.token_healing = o.token_healing;
    const bool parsed = prepared_.request.chat.is_object();
    job.keep_special = !o.skip_special || (parsed && model_->traits.special_text);
    if (o.logprobs) params.logprobs = o.top_logprobs;
    job.seed = choose_seed(params) + static_cast<uint64_t>(choice);
    job.sampler = std::make_shared<const Sampler>(params, model_->sampler_vocab);
    if (prepared_.constraint)
        job.constraint = make_job_constraint(prepared_.constraint, model_->tokenizer,
                                             prepared_.scope, prepared_.scope_waits);
    job.priority = o.priority;
    job.on_news = [waker] { Waker::wake(waker); };
    return job;
}

void Generation::submit_all() {
    const api::GenerationRequest& r = prepared_.request;
    // One seed for the request: its answers differ by their number alone.
    prepared_.request.output.sampler.seed = choose_seed(r.output.sampler);
    for (size_t p = 0; p < prepared_.prompts.size(); ++p)
        for (int i = 0; i < r.output.n; ++i) {
            JobRequest job = job_for(p, i, waker_);
            api::Usage usage;
            usage.prompt_tokens = i == 0 ? static_cast<int64_t>(prepared_.prompts[p].size()) : 0;
            Choice& c = choices_.emplace_back(api::OutputParser(prepared_.parser), usage);
            c.prompt = p;
            c.number = i;
            c.limit = job.max_new_tokens;
            if (output().reasoning_budget && !prepared_.parser.syntax.think_close.empty() &&
                prepared_.forced.empty()) {
                job.max_new_tokens = std::min(c.limit, *output().reasoning_budget);
                c.goes_on = job.max_new_tokens < c.limit;
            }
            c.job = model_->generator->submit(std::move(job));
        }
}

void Generation::start() {
    if (prepared_.request.best_of > output().n)
        throw api::bad_field("best_of", fmt::format("found {}, needed n, {}",
                                                    prepared_.request.best_of, output().n));
    if (prepared_.request.echo && output().logprobs)
        throw api::bad_field("echo",
                             "found together with logprobs, needed one of them: the "
                             "probabilities of prompt tokens are not computed");
    waker_ = std::make_shared<Waker>();
    waker_->generation = weak_from_this();
    waker_->exchange = exchange_;
    waker_->posted = true;  // nothing is drained before everything stands
    try {
        submit_all();
    } catch (const Error& e) {
        if (e.code() != Errc::out_of_memory) throw;
        throw ApiError(429, fmt::format("{}; try again later", e.what()));
    }
    reply_ = protocol_.make_reply(reply_head());
    self_ = shared_from_this();
    running_ = service_.add_running([waker = waker_] {
        if (const auto g = waker->generation.lock()) {
            g->shut_down_ = true;
            waker->exchange->post([g] { g->cancel(); });
        }
    });
    exchange_->post([self = shared_from_this()] {
        if (self->prepared_.request.stream) {
            self->exchange_->begin_events(self->reply_->ping());
            self->exchange_->write(self->reply_->begin(self->total()));
        }
        self->exchange_->on_disconnect([weak = self->weak_from_this()] {
            if (const auto g = weak.lock()) g->cancel();
        });
        for (size_t i = 0; i < self->choices_.size(); ++i)
            if (!self->prepared_.forced.empty()) {
                const auto events = self->choices_[i].parser.push(self->prepared_.forced);
                self->exchange_->write(
                    self->reply_->deltas(static_cast<int>(i), events, {}, self->total()));
            }
        self->waker_->posted = false;
        self->drain();
    });
}

// The second job of an answer whose reasoning is limited: closes the reasoning if it is still open,
// and goes on from there. False: nothing is left of the limit.
bool Generation::go_on(size_t index) {
    Choice& c = choices_[index];
    std::string closing;
    if (c.parser.in_reasoning())
        closing = output().reasoning_budget_message + prepared_.parser.syntax.think_close + "\n\n";
    for (const int32_t id : model_->tokenizer.encode(closing, {.add_special = false}))
        c.written.push_back(id);
    JobRequest job = job_for(c.prompt, c.number, waker_);
    job.prompt.insert(job.prompt.end(), c.written.begin(), c.written.end());
    job.max_new_tokens = c.limit - static_cast<int64_t>(c.written.size());
    if (job.max_new_tokens < 1) return false;
    if (job.constraint)
        for (const int32_t id : c.written) job.constraint->accept(id);
    const auto events = c.parser.push(closing);
    exchange_->write(reply_->deltas(static_cast<int>(index), events, {}, total()));
    c.goes_on = false;
    c.job = model_->generator->submit(std::move(job));
    return true;
}

api::Usage Generation::total() const {
    api::Usage sum;
    for (const Choice& c : choices_) {
        sum.prompt_tokens += c.usage.prompt_tokens;
        sum.cached_tokens += c.usage.prompt_tokens > 0 ? c.usage.cached_tokens : 0;
        sum.completion_tokens += c.usage.completion_tokens;
        sum.reasoning_tokens += c.usage.reasoning_tokens;
        sum.accepted_draft_tokens += c.usage.accepted_draft_tokens;
        sum.rejected_draft_tokens += c.usage.rejected_draft_tokens;
        sum.queue_seconds = std::max(sum.queue_seconds, c.usage.queue_seconds);
        sum.prompt_seconds = std::max(sum.prompt_seconds, c.usage.prompt_seconds);
        sum.completion_seconds = std::max(sum.completion_seconds, c.usage.completion_seconds);
    }
    return sum;
}

std::vector<api::TokenReport> Generation::reports(const std::vector<JobToken>& tokens) const {
    std::vector<api::TokenReport> out;
    if (!output().logprobs) return out;
    for (const JobToken& t : tokens) {
        api::TokenReport r{t.id, model_->tokenizer.bytes_of(t.id), t.logprob, {}};
        for (const TokenLogprob& other : t.top)
            r.top.push_back({other.token, model_->tokenizer.bytes_of(other.token), other.logprob});
        out.push_back(std::move(r));
    }
    return out;
}

// News of every job, until there is none.
void Generation::drain() {
    if (!self_) return;
    const auto keep = self_;  // finish() may let go of the last reference
    try {
        for (size_t i = 0; i < choices_.size() && self_; ++i)
            while (self_ && !choices_[i].ended && choices_[i].job.poll(event_)) take(i, event_);
    } catch (const ApiError& e) {
        fail(e);
    } catch (const Error& e) {
        fail(api::from_error(e));
    } catch (const std::exception& e) {
        log(LogLevel::error, "{}: {}", exchange_->request().id, e.what());
        fail(ApiError(500, "internal error"));
    }
}

void Generation::take(size_t index, JobEvent& event) {
    Choice& c = choices_[index];
    const auto tokens = static_cast<int64_t>(event.tokens.size());
    if (tokens > 0) {
        if (first_token_seconds_ == 0) first_token_seconds_ = seconds_since(arrived_);
        if (c.began) service_.metrics().between_tokens(seconds_since(c.last_piece), tokens);
        c.began = true;
        c.last_piece = Clock::now();
    }
    c.usage.completion_tokens += tokens;
    if (!event.text.empty() && !c.cut) {
        const bool reasoned = c.parser.in_reasoning();
        const auto events = c.parser.push(event.text);
        bool called = false;
        for (const api::OutputEvent& e : events)
            called |= e.kind == api::OutputEvent::Kind::call_end;
        if (reasoned || c.parser.in_reasoning()) c.usage.reasoning_tokens += tokens;
        // Log-probabilities are those of the answer, not of the thoughts before it.
        const bool answer = !reasoned && !c.parser.in_reasoning() && c.parser.calls() == 0;
        exchange_->write(reply_->deltas(
            static_cast<int>(index), events,
            answer ? reports(event.tokens) : std::vector<api::TokenReport>{}, total()));
        // With one call allowed the answer ends behind it.
        if (called && prepared_.parser.max_calls == 1) {
            c.cut = true;
            c.job.cancel();
        }
    }
    if (c.goes_on)
        for (const JobToken& t : event.tokens) c.written.push_back(t.id);
    if (!event.result) return;
    if (c.goes_on && event.result->end == JobEnd::max_new_tokens && go_on(index)) return;
    finish_choice(index, *event.result);
}

void Generation::finish_choice(size_t index, const JobResult& result) {
    Choice& c = choices_[index];
    c.usage.completion_tokens =
        static_cast<int64_t>(c.goes_on ? 0 : c.written.size()) + result.new_tokens;
    c.usage.cached_tokens = std::min(result.cached_tokens, c.usage.prompt_tokens);
    c.usage.accepted_draft_tokens = result.accepted_drafts;
    c.usage.rejected_draft_tokens = result.rejected_drafts;
    c.usage.queue_seconds = result.queue_seconds;
    c.usage.prompt_seconds = result.prompt_seconds;
    c.usage.completion_seconds = result.decode_seconds;
    c.ended = true;
    if (result.end == JobEnd::error)
        return fail(result.error ? api::from_error(*result.error)
                                 : ApiError(503, "the generation failed"));
    if (result.end == JobEnd::cancelled && !c.cut)
        return fail(ApiError(503, "the generation was cancelled"));
    if (!c.cut) {
        const auto events = c.parser.finish();
        exchange_->write(reply_->deltas(static_cast<int>(index), events, {}, total()));
    }
    api::ChoiceEnd end;
    if (result.end == JobEnd::stop_string) {
        end.why = Why::stop_string;
        end.stop_string = result.stop_string;
    } else if (result.end == JobEnd::max_new_tokens) {
        end.why = output().max_tokens ? Why::length : Why::context_full;
    }
    if (c.parser.calls() > 0) end.why = Why::tool_call;
    exchange_->write(reply_->end_choice(static_cast<int>(index), end, total()));
    for (const Choice& other : choices_)
        if (!other.ended) return;
    finish();
}

void Generation::finish() {
    const api::Usage usage = total();
    RequestRecord record{"stop",
                         usage,
                         output().max_tokens.value_or(0),
                         output().n,
                         first_token_seconds_,
                         seconds_since(arrived_)};
    const bool stream = prepared_.request.stream;
    if (stream) {
        exchange_->write(reply_->end(usage));
        exchange_->end();
    }
    if (!stream || protocol_.keep) {
        const Json whole = reply_->whole(usage);
        if (protocol_.keep) protocol_.keep(whole);
        if (!stream) exchange_->reply(json_reply(200, whole));
    }
    for (const Choice& c : choices_)
        if (c.parser.calls() > 0) record.finish = "tool_calls";
    if (record.finish == "stop" && output().max_tokens &&
        usage.completion_tokens >= *output().max_tokens)
        record.finish = "length";
    service_.metrics().request_done(record);
    close();
}

void Generation::fail(const ApiError& error) {
    if (prepared_.request.stream) {
        exchange_->write(reply_->fail(error));
        exchange_->end();
    } else {
        exchange_->reply(error_reply(error, family_, exchange_->request().id));
    }
    service_.metrics().request_done({shut_down_ ? "abort" : "error", total(),
                                     output().max_tokens.value_or(0), output().n,
                                     first_token_seconds_, seconds_since(arrived_)});
    close();
}

// The client left, or the server ends.
void Generation::cancel() {
    if (!self_) return;
    const auto keep = self_;
    if (shut_down_)
        return fail(ApiError(503, "ended by the server, which shuts down or changes its model"));
    service_.metrics().request_done({"abort", total(), output().max_tokens.value_or(0), output().n,
                                     first_token_seconds_, seconds_since(arrived_)});
    close();
}

// Lets go of the jobs, which cancels those that run, and of itself.
void Generation::close() {
    for (Choice& c : choices_) c.job = {};
    if (running_) service_.remove_running(std::exchange(running_, 0));
    self_.reset();
}

}  // namespace

void start_generation(Service& service, const Call& call, std::shared_ptr<LoadedModel> model,
                      api::GenerationRequest request, Protocol protocol) {
    PreparedRequest prepared = prepare(*model, std::move(request));
    std::make_shared<Generation>(service, call, std::move(model), std::move(prepared),
                                 std::move(protocol))
        ->start();
}

}  // namespace exl3::server
