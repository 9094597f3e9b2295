#include "gen/mailbox.h"

#include <utility>

namespace exl3 {

void JobEvent::clear() {
    text.clear();
    tokens.clear();
    prompt_done = 0;
    result.reset();
}

std::string_view name_of(JobEnd end) {
    switch (end) {
        case JobEnd::stop_token: return "stop_token";
        case JobEnd::stop_string: return "stop_string";
        case JobEnd::max_new_tokens: return "max_new_tokens";
        case JobEnd::constraint: return "constraint";
        case JobEnd::loop: return "loop";
        case JobEnd::cancelled: return "cancelled";
        case JobEnd::error: return "error";
    }
    return "";
}

// What one step brings fits without allocating.
constexpr size_t kText = 256, kTokens = 32;

// With mutex_ held. The reader's memory comes back for the next event.
bool Mailbox::take(JobEvent& event) {
    event.clear();
    if (!news_) return false;
    const int64_t prompt_done = event_.prompt_done;
    std::swap(event, event_);
    event_.text.reserve(kText);
    event_.tokens.reserve(kTokens);
    event_.prompt_done = prompt_done;
    news_ = false;
    ended_ = event.result.has_value();
    return true;
}

bool Mailbox::poll(JobEvent& event) {
    const std::lock_guard lock(mutex_);
    return take(event);
}

bool Mailbox::wait(JobEvent& event, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (!ended_) ready_.wait_for(lock, timeout, [&] { return news_; });
    return take(event);
}

}  // namespace exl3
