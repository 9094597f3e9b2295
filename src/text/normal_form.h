#pragma once
#include <string>
#include <string_view>

namespace exl3::text {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Unicode normalization (UAX 15) with the tables of utf8proc, in linear time for any input: runs
/// of combining marks are sorted with n log n, unlike utf8proc_map.
void normalize(std::string& text, NormalForm form);

/// Full lower-casing, each code point on its own (no final sigma).
void lowercase(std::string& text);

}  // namespace exl3::text
