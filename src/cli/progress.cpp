#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.h"
#include "cli/signals.h"

namespace exl3::cli {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds kQuiet = 1s, kRedraw = 100ms, kLine = 10s;
constexpr int kBar = 24;

std::string remaining(double elapsed, double share) {
    if (share <= 0) return "";
    const auto seconds = static_cast<int64_t>(elapsed * (1 - share) / share);
    return seconds < 60 ? fmt::format(", {} s left", seconds)
                        : fmt::format(", {} min {:02} s left", seconds / 60, seconds % 60);
}

}  // namespace

Progress::Progress(std::string label)
    : label_(std::move(label)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      last_(begin_) {}

Progress::~Progress() {
    clear();
}

void Progress::clear() {
    if (drawn_ && terminal_) std::fputs("\r\x1b[K", stderr);
    drawn_ = false;
}

void Progress::update(int64_t done, int64_t total) {
    check_stop();
    const auto now = Clock::now();
    if (log_level() < LogLevel::info || total <= 0 || now - begin_ < kQuiet ||
        now - last_ < (terminal_ ? kRedraw : kLine))
        return;
    last_ = now;
    const double share = static_cast<double>(done) / static_cast<double>(total);
    const std::string state =
        fmt::format("{}: {} of {}{}", label_, done, total,
                    remaining(std::chrono::duration<double>(now - begin_).count(), share));
    if (!terminal_) {
        std::fprintf(stderr, "%s\n", state.c_str());
        return;
    }
    const int full = static_cast<int>(share * kBar);
    std::fprintf(stderr, "\r\x1b[K[%s%s] %s", std::string(static_cast<size_t>(full), '#').c_str(),
                 std::string(static_cast<size_t>(kBar - full), ' ').c_str(), state.c_str());
    drawn_ = true;
}

}  // namespace exl3::cli
