#pragma once
#include <fmt/format.h>

#include <functional>
#include <string_view>

namespace exl3 {

enum class LogLevel { error, warn, info, debug };

/// The log goes to one process-wide sink, stderr unless changed; lines above `level` are dropped.
void set_log_level(LogLevel level);
LogLevel log_level();
void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);
void log_line(LogLevel level, std::string_view line);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
    if (level <= log_level()) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace exl3
