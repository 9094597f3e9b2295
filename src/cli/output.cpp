#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "cli/signals.h"

namespace exl3::cli {
namespace {

bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
}

void require_finite(const Json& value, const std::string& path) {
    if (value.is_number_float() && !std::isfinite(value.get<double>()))
        throw Error(Errc::invalid_argument, {},
                    fmt::format("result '{}': found {}, needed a finite number", path,
                                value.get<double>()));
    if (value.is_structured())
        for (const auto& [key, member] : value.items())
            require_finite(member, path.empty() ? key : path + "." + key);
}

void print_line(std::string line) {
    for (char& c : line)
        if (c == '\n' || c == '\r') c = ' ';
    line += '\n';
    write_all(STDERR_FILENO, line);  // nowhere is left to report that stderr is closed
}

}  // namespace

void print(std::string_view text) {
    if (!write_all(STDOUT_FILENO, text))
        throw Error(Errc::io, {"stdout", {}, {}},
                    fmt::format("cannot write: {}", std::strerror(errno)));
}

void print_json(const Json& document) {
    require_finite(document, "");
    print(document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_error(std::string_view text) {
    print_line(fmt::format("error: {}", text));
}

void print_note(std::string_view text) {
    print_line(std::string(text));
}

bool guard_output(const std::function<void()>& work) {
    try {
        work();
        return true;
    } catch (const std::exception& e) {
        print_error(e.what());
        return false;
    }
}

}  // namespace exl3::cli
