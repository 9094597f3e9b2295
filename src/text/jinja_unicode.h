#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/unicode.h"

/// Text as Python sees it: strings are UTF-8 here, but every rule is stated in code points. Lone
/// surrogates, which a literal can spell as '\ud800', travel as three bytes each. The rules are
/// Python 3.11's, with the Unicode version of utf8proc.
namespace exl3::jinja {

using text::append_utf8;
using text::next_code_point;

/// Reads the code point that ends at `at` and moves `at` to its start.
char32_t previous_code_point(std::string_view text, size_t& at);
size_t count_code_points(std::string_view text);
/// Byte offset of code point `index`; text.size() when the text has no more than that.
size_t offset_of(std::string_view text, size_t index);
bool is_space(char32_t c);      ///< str.isspace, and what strip() removes
bool is_printable(char32_t c);  ///< what repr() leaves alone
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);  ///< a title-case letter such as U+01C5
inline bool is_alnum(char32_t c) {
    return is_alpha(c) || is_numeric(c);
}
inline bool is_cased(char32_t c) {
    return is_lower(c) || is_upper(c) || is_title(c);
}
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);
bool is_word(char32_t c);  ///< \w of Python's re

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);  ///< with the rule for a final sigma
std::string to_title(std::string_view text);  ///< str.title: "it's" becomes "It'S"
std::string to_capital(std::string_view text);
std::string to_swapped(std::string_view text);
std::string to_folded(std::string_view text);

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);
inline std::string_view strip(std::string_view text) {
    return strip_left(strip_right(text));
}
/// The same for a set of characters, given as a string.
std::string_view strip_left(std::string_view text, std::string_view set);
std::string_view strip_right(std::string_view text, std::string_view set);
bool is_ascii(std::string_view text);

}  // namespace exl3::jinja
