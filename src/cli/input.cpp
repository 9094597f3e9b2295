#include "cli/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "cli/signals.h"
#include "io/mapped_file.h"

namespace exl3::cli {
namespace {

std::string read_stdin() {
    std::string text;
    char block[65536];
    for (;;) {
        const ssize_t n = ::read(STDIN_FILENO, block, sizeof block);
        if (n == 0) return text;
        if (n > 0) {
            text.append(block, static_cast<size_t>(n));
            continue;
        }
        if (errno != EINTR)
            throw Error(Errc::io, {"stdin", {}, {}},
                        fmt::format("cannot read: {}", std::strerror(errno)));
        check_stop();
    }
}

}  // namespace

std::string input_name(const std::string& path) {
    return path == "-" ? "stdin" : path;
}

std::string read_input(const std::string& path) {
    return path == "-" ? read_stdin() : read_file(path).value();
}

Json read_json_input(const std::string& path) {
    return parse_json(read_input(path), input_name(path)).value();
}

std::vector<int32_t> ids_of(const Json& value, const std::string& file, const std::string& where) {
    const auto refuse = [&](const std::string& what) {
        throw Error(Errc::invalid_file, {file, {}, {}}, where + what);
    };
    if (!value.is_array())
        refuse(fmt::format("found {}, needed an array of token ids", value.type_name()));
    std::vector<int32_t> ids;
    ids.reserve(value.size());
    for (const Json& item : value) {
        const bool fits =
            item.is_number_integer() &&
            (item.is_number_unsigned() ? item.get<uint64_t>() <= std::numeric_limits<int32_t>::max()
                                       : item.get<int64_t>() >= 0);
        if (!fits)
            refuse(fmt::format("entry {}: found {}, needed a token id from 0 to {}", ids.size(),
                               item.is_structured() ? std::string(item.type_name()) : item.dump(),
                               std::numeric_limits<int32_t>::max()));
        ids.push_back(item.get<int32_t>());
    }
    return ids;
}

std::vector<int32_t> read_ids(const std::string& path) {
    return ids_of(read_json_input(path), input_name(path), "");
}

}  // namespace exl3::cli
