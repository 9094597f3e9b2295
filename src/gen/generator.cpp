#include "gen/generator.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "gen/engine.h"

namespace exl3 {

// ---- The submitter's side of a job

JobHandle::JobHandle(JobHandle&&) noexcept = default;

JobHandle& JobHandle::operator=(JobHandle&& o) noexcept {
    if (this == &o) return *this;
    cancel();
    mailbox_ = std::move(o.mailbox_);
    return *this;
}

JobHandle::~JobHandle() {
    cancel();
}

void JobHandle::cancel() {
    if (mailbox_) mailbox_->cancel();
}

bool JobHandle::poll(JobEvent& event) {
    return mailbox_->poll(event);
}

bool JobHandle::wait(JobEvent& event, std::chrono::milliseconds timeout) {
    return mailbox_->wait(event, timeout);
}

// ---- The thread

struct Generator::Impl {
    Impl(std::shared_ptr<const Model> m, Tokenizer t, Device& device, const GeneratorOptions& o)
        : model(std::move(m)),
          tokenizer(std::move(t)),
          options(o),
          engine(*model, tokenizer, device, o),
          max_context(o.max_context > 0 ? std::min(o.max_context, engine.capacity())
                                        : engine.capacity()) {
        stats = engine.stats();
        engine.on_ends([this](const GeneratorStats& s) {
            const std::lock_guard lock(mutex);
            stats = s;
        });
        thread = std::jthread([this](const std::stop_token& stop) { serve(stop); });
    }

    void serve(const std::stop_token& stop);
    void step();

    const std::shared_ptr<const Model> model;
    const Tokenizer tokenizer;
    const GeneratorOptions options;
    Engine engine;  // of the thread alone once it runs
    const int64_t max_context;

    std::mutex mutex;
    std::condition_variable_any wake;
    // Guarded by the mutex:
    std::vector<std::unique_ptr<LiveJob>> inbox;
    uint64_t submitted = 0;
    GeneratorStats stats;

    std::jthread thread;  // last: it uses everything above
};

void Generator::Impl::serve(const std::stop_token& stop) {
    std::vector<std::unique_ptr<LiveJob>> arrived;
    while (true) {
        {
            std::unique_lock lock(mutex);
            stats = engine.stats();
            if (engine.idle()) wake.wait(lock, stop, [&] { return !inbox.empty(); });
            arrived.swap(inbox);
        }
        for (auto& job : arrived) engine.add(std::move(job));
        arrived.clear();
        if (stop.stop_requested()) break;
        step();
    }
    engine.cancel_all();
}

// What escapes the engine is no job's fault. All of them end, and new ones find a clean start.
void Generator::Impl::step() {
    try {
        engine.step();
    } catch (const std::exception& e) {
        log(LogLevel::error, "the generator failed: {}", e.what());
        engine.fail_all(Error(Errc::device, {}, e.what()));
    }
}

Generator::Generator(std::shared_ptr<const Model> model, Tokenizer tokenizer, Device& device,
                     const GeneratorOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(tokenizer), device, options)) {}

Generator::~Generator() = default;

int64_t Generator::max_context() const {
    return impl_->max_context;
}

GeneratorStats Generator::stats() const {
    const std::lock_guard lock(impl_->mutex);
    GeneratorStats s = impl_->stats;
    s.waiting += static_cast<int64_t>(impl_->inbox.size());
    return s;
}

namespace {

void check_request(const JobRequest& r, int64_t vocab, int64_t max_context) {
    const auto fail = [](std::string what) { throw Error(Errc::invalid_argument, {}, what); };
    if (!r.sampler) fail("job: found no sampler, needed one");
    if (r.prompt.empty()) fail("the prompt has no tokens, needed at least one");
    for (const int32_t id : r.prompt)
        if (id < 0 || id >= vocab)
            fail(fmt::format("prompt token id {}: needed 0 to {}", id, vocab - 1));
    if (r.max_new_tokens < 0)
        fail(fmt::format("max_new_tokens: found {}, needed 0 or more", r.max_new_tokens));
    const auto prompt = static_cast<int64_t>(r.prompt.size());
    if (prompt > max_context || r.max_new_tokens > max_context - prompt)
        fail(fmt::format("{} prompt tokens and {} new ones: the context holds {}", prompt,
                         r.max_new_tokens, max_context));
}

}  // namespace

JobHandle Generator::submit(JobRequest request) {
    check_request(request, impl_->model->spec().vocab, impl_->max_context);
    auto job = make_job(std::move(request), impl_->tokenizer);
    JobHandle handle(job->mailbox);
    {
        const std::lock_guard lock(impl_->mutex);
        const auto waiting = impl_->stats.waiting + static_cast<int64_t>(impl_->inbox.size());
        if (impl_->options.max_waiting > 0 && waiting >= impl_->options.max_waiting)
            throw Error(Errc::out_of_memory, {},
                        fmt::format("{} jobs wait already, no more than {} may", waiting,
                                    impl_->options.max_waiting));
        job->arrival = impl_->submitted++;
        impl_->inbox.push_back(std::move(job));
    }
    impl_->wake.notify_one();
    return handle;
}

}  // namespace exl3
