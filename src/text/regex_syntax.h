#pragma once
#include <string>
#include <string_view>

namespace exl3::text {

/// Rewrites an expression in Oniguruma's Ruby syntax, which tokenizer files use, for PCRE2 (UTF and
/// UCP on, MULTILINE, newline LF). What differs and is translated: classes may nest and intersect
/// (&&); \s, \w, \d, \h, \b and property names have Oniguruma's sets; (?m:) lets the dot match a
/// newline; a + or ? behind an interval repeats it instead of changing it. Throws
/// Error{unsupported} for what has no counterpart.
std::string translate_regex(std::string_view pattern);

}  // namespace exl3::text
