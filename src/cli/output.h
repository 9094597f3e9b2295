#pragma once
#include <functional>
#include <string_view>

#include "io/json.h"

namespace exl3::cli {

/// Writes to stdout at once, so that a reader sees a stream as it grows.
/// Throws Error{io} when stdout is closed or full.
void print(std::string_view text);

/// Prints one JSON document and a newline. Throws Error{invalid_argument} naming the key of a
/// number that is not finite, before anything is printed.
void print_json(const Json& document);

/// One line "error: TEXT" on stderr.
void print_error(std::string_view text);
/// One line on stderr, whatever the log level.
void print_note(std::string_view text);

/// Runs `work`; prints what it throws as an error and returns false.
bool guard_output(const std::function<void()>& work);

}  // namespace exl3::cli
