#pragma once
#include <string>
#include <string_view>

namespace exl3::jinja {

struct NumberLiteral {
    size_t size = 0;  ///< bytes
    bool is_real = false;
};

/// The number at the start of `text`, which starts with a digit: 42, 1_000, 0x1f, 2.5, 1e3.
NumberLiteral scan_number(std::string_view text, bool may_be_real);

/// The value of a string literal without its quotes, by Python's rules for escapes. Returns what
/// is wrong with it, or nothing.
std::string unescape_literal(std::string_view raw, std::string& value);

}  // namespace exl3::jinja
