#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "gen/job.h"

namespace exl3 {

/// Where the engine leaves a job's news and its submitter finds them. However slow the reader, the
/// engine never waits and the news stay one event.
class Mailbox {
public:
    explicit Mailbox(std::function<void()> on_news) : on_news_(std::move(on_news)) {}

    // The engine's side.
    /// Adds news; `add` changes the event that waits for the reader.
    template <typename Add>
    void post(Add&& add) {
        bool first = false;
        {
            const std::lock_guard lock(mutex_);
            add(event_);
            first = !news_;
            news_ = true;
        }
        if (!first) return;
        ready_.notify_one();
        if (on_news_) on_news_();
    }
    bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

    // The reader's side; see JobHandle.
    bool poll(JobEvent& event);
    bool wait(JobEvent& event, std::chrono::milliseconds timeout);
    void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

private:
    bool take(JobEvent& event);

    std::mutex mutex_;
    std::condition_variable ready_;
    JobEvent event_;
    bool news_ = false;
    bool ended_ = false;  ///< the result was taken
    std::atomic<bool> cancelled_{false};
    const std::function<void()> on_news_;
};

}  // namespace exl3
