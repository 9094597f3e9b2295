#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace exl3::text {

constexpr char32_t kReplacement = 0xFFFD;

/// The code point at s[i], which must be valid UTF-8; moves i behind it.
inline char32_t next_code_point(std::string_view s, size_t& i) {
    const auto byte = [&](size_t k) { return static_cast<uint8_t>(s[k]); };
    const uint32_t b = byte(i);
    if (b < 0x80) {
        i += 1;
        return b;
    }
    if (b < 0xE0) {
        const char32_t c = (b & 0x1F) << 6 | (byte(i + 1) & 0x3Fu);
        i += 2;
        return c;
    }
    if (b < 0xF0) {
        const char32_t c = (b & 0x0F) << 12 | (byte(i + 1) & 0x3Fu) << 6 | (byte(i + 2) & 0x3Fu);
        i += 3;
        return c;
    }
    const char32_t c = (b & 0x07) << 18 | (byte(i + 1) & 0x3Fu) << 12 | (byte(i + 2) & 0x3Fu) << 6 |
                       (byte(i + 3) & 0x3Fu);
    i += 4;
    return c;
}

/// Bytes of the code point that starts with this byte (valid UTF-8).
inline size_t utf8_length(char lead) {
    const auto b = static_cast<uint8_t>(lead);
    return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

/// The index of the code point that ends just before i > 0.
inline size_t previous_index(std::string_view s, size_t i) {
    do --i;
    while (i > 0 && (static_cast<uint8_t>(s[i]) & 0xC0) == 0x80);
    return i;
}

void append_utf8(std::string& out, char32_t c);

bool is_valid_utf8(std::string_view s);

/// Replaces each maximal invalid part by U+FFFD (Unicode 15, section 3.9, best practice).
std::string replace_invalid_utf8(std::string_view s);

/// What stands at the beginning of s (not empty) when read as UTF-8.
struct Utf8Step {
    enum class Kind { valid, invalid, incomplete } kind;
    size_t bytes;  ///< length of the code point, or of the invalid or incomplete part
};
Utf8Step utf8_step(std::string_view s);

/// Unicode general categories as bits, for sets of them. Bit numbers are those of utf8proc.
inline constexpr uint32_t kCn = 1u << 0, kLu = 1u << 1, kLl = 1u << 2, kLt = 1u << 3, kLm = 1u << 4,
                          kLo = 1u << 5, kMn = 1u << 6, kMc = 1u << 7, kMe = 1u << 8, kNd = 1u << 9,
                          kNl = 1u << 10, kNo = 1u << 11, kPc = 1u << 12, kPd = 1u << 13,
                          kPs = 1u << 14, kPe = 1u << 15, kPi = 1u << 16, kPf = 1u << 17,
                          kPo = 1u << 18, kCc = 1u << 26, kCf = 1u << 27, kCo = 1u << 29;
inline constexpr uint32_t kLetter = kLu | kLl | kLt | kLm | kLo, kMark = kMn | kMc | kMe,
                          kNumber = kNd | kNl | kNo,
                          kPunctuation = kPc | kPd | kPs | kPe | kPi | kPf | kPo;

/// The bit number of each code point below 0x110000.
const uint8_t* category_table();

inline uint32_t category(char32_t c) {
    return 1u << category_table()[c];
}

/// The property White_Space.
inline bool is_space(char32_t c) {
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Simple lower-casing: one code point to one.
char32_t lower(char32_t c);

/// \w of Unicode regular expressions: Alphabetic, marks, decimal digits, connectors, joiners.
bool is_word(char32_t c);

}  // namespace exl3::text
