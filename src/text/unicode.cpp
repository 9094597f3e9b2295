#include "text/unicode.h"

#include <utf8proc.h>

#include <memory>

namespace exl3::text {

void append_utf8(std::string& out, char32_t c) {
    const auto put = [&](uint32_t b) { out += static_cast<char>(b); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xC0 | c >> 6);
        put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        put(0xE0 | c >> 12);
        put(0x80 | (c >> 6 & 0x3F));
        put(0x80 | (c & 0x3F));
    } else {
        put(0xF0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3F));
        put(0x80 | (c >> 6 & 0x3F));
        put(0x80 | (c & 0x3F));
    }
}

Utf8Step utf8_step(std::string_view s) {
    using Kind = Utf8Step::Kind;
    const auto lead = static_cast<uint8_t>(s[0]);
    if (lead < 0x80) return {Kind::valid, 1};
    if (lead < 0xC2 || lead > 0xF4) return {Kind::invalid, 1};
    const size_t length = utf8_length(s[0]);
    // The second byte excludes overlong forms, surrogates and values past U+10FFFF.
    uint8_t low = 0x80, high = 0xBF;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    for (size_t i = 1; i < length; ++i) {
        if (i == s.size()) return {Kind::incomplete, i};
        const auto b = static_cast<uint8_t>(s[i]);
        if (b < low || b > high) return {Kind::invalid, i};
        low = 0x80, high = 0xBF;
    }
    return {Kind::valid, length};
}

bool is_valid_utf8(std::string_view s) {
    for (size_t i = 0; i < s.size();) {
        if (static_cast<uint8_t>(s[i]) < 0x80) {
            ++i;
            continue;
        }
        const Utf8Step step = utf8_step(s.substr(i));
        if (step.kind != Utf8Step::Kind::valid) return false;
        i += step.bytes;
    }
    return true;
}

std::string replace_invalid_utf8(std::string_view s) {
    std::string out;
    for (size_t i = 0; i < s.size();) {
        const Utf8Step step = utf8_step(s.substr(i));
        if (step.kind == Utf8Step::Kind::valid)
            out.append(s.substr(i, step.bytes));
        else
            append_utf8(out, kReplacement);
        i += step.bytes;
    }
    return out;
}

const uint8_t* category_table() {
    // utf8proc finds a category through two tables; pre-tokenizers ask for several per character.
    static const std::unique_ptr<const uint8_t[]> table = [] {
        auto t = std::make_unique<uint8_t[]>(0x110000);
        for (int32_t c = 0; c < 0x110000; ++c)
            t[static_cast<size_t>(c)] = static_cast<uint8_t>(utf8proc_category(c));
        return t;
    }();
    return table.get();
}

bool is_word(char32_t c) {
    if (category(c) & (kLetter | kMark | kNd | kNl | kPc)) return true;
    // Other_Alphabetic outside the marks: circled and squared Latin letters. Then Join_Control.
    return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189) || c == 0x200C ||
           c == 0x200D;
}

char32_t lower(char32_t c) {
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

}  // namespace exl3::text
