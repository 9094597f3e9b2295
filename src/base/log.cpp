#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>

namespace exl3 {
namespace {

std::atomic<LogLevel> level_now{LogLevel::info};

struct Sink {
    std::mutex mutex;
    std::function<void(LogLevel, std::string_view)> write = [](LogLevel level,
                                                               std::string_view line) {
        const char* prefix = level == LogLevel::error  ? "error: "
                             : level == LogLevel::warn ? "warning: "
                                                       : "";
        std::fprintf(stderr, "%s%.*s\n", prefix, static_cast<int>(line.size()), line.data());
    };
};

Sink& sink() {
    static Sink s;
    return s;
}

}  // namespace

void set_log_level(LogLevel level) {
    level_now = level;
}

LogLevel log_level() {
    return level_now;
}

void set_log_sink(std::function<void(LogLevel, std::string_view)> write) {
    const std::lock_guard lock(sink().mutex);
    sink().write = std::move(write);
}

void log_line(LogLevel level, std::string_view line) {
    const std::lock_guard lock(sink().mutex);
    sink().write(level, line);
}

}  // namespace exl3
