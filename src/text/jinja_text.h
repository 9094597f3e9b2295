#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_runtime.h"

/// Python's string algorithms on UTF-8, shared by methods and filters.
namespace exl3::jinja {

/// Where `sub` first occurs at or after `from`, in linear time; npos if nowhere.
size_t find_text(std::string_view text, std::string_view sub, size_t from = 0);
/// Where it last occurs. Counts the work, which is quadratic at worst.
size_t find_last(Runtime& rt, std::string_view text, std::string_view sub);

using TakePiece = std::function<void(std::string_view)>;

/// Replaces up to `count` occurrences (all of them when negative). An empty `old` matches before
/// every code point and at the end.
std::string replace_text(Runtime& rt, std::string_view text, std::string_view old,
                         std::string_view with, Int count);
/// str.split and rsplit: at most `limit` cuts when it is not negative. From the right, the pieces
/// come last one first.
void split_spaces(std::string_view text, Int limit, bool from_right, const TakePiece& take);
void split_at(Runtime& rt, std::string_view text, std::string_view separator, Int limit,
              bool from_right, const TakePiece& take);
/// str.splitlines: each line and the line end that follows it.
void for_each_line(std::string_view text,
                   const std::function<void(std::string_view, std::string_view)>& take);
/// Runs of \w.
size_t count_words(std::string_view text);
/// The title filter: words start after spaces and after - ( { [ <.
std::string title_words(std::string_view text);
/// Text without tags and comments, spaces collapsed: Markup.striptags.
std::string strip_tags(std::string_view text);
/// textwrap.wrap of one line.
struct WrapOptions {
    size_t width = 79;
    bool break_long_words = true;
    bool break_on_hyphens = true;
};
std::vector<std::string> wrap_line(Runtime& rt, std::string_view line, const WrapOptions& options);

}  // namespace exl3::jinja
