#include "cli/signals.h"

#include <unistd.h>
#include <csignal>

#include "base/error.h"

namespace exl3::cli {
namespace {

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set only such flags");

std::atomic<bool> terminated{false};

void on_signal(int number) {
    if (number == SIGTERM) terminated = true;
    if (stop.exchange(true)) ::_exit(130);
}

}  // namespace

void catch_signals() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = 0;  // no SA_RESTART: a read that waits for the user ends with EINTR
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
}

const std::atomic<bool>& stop_requested() {
    return stop;
}

void check_stop() {
    if (stop) throw Error(Errc::cancelled, {}, "interrupted");
}

bool clear_stop() {
    if (terminated) return false;
    stop = false;
    return true;
}

}  // namespace exl3::cli
