#include "text/jinja_unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "text/jinja_unicode_data.h"

namespace exl3::jinja {
namespace {

bool continues(char c) {
    return (static_cast<uint8_t>(c) & 0xc0) == 0x80;
}

template <size_t N>
bool in_ranges(const Range (&ranges)[N], char32_t c) {
    const Range* r =
        std::upper_bound(std::begin(ranges), std::end(ranges), c,
                         [](char32_t x, const Range& range) { return x < range.first; });
    return r != std::begin(ranges) && c <= std::prev(r)->last;
}

utf8proc_category_t category(char32_t c) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

const SpecialCase* special_case(char32_t c) {
    const SpecialCase* s =
        std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), c,
                         [](const SpecialCase& row, char32_t x) { return row.from < x; });
    return s != std::end(kSpecialCases) && s->from == c ? s : nullptr;
}

char32_t simple(utf8proc_int32_t (*map)(utf8proc_int32_t), char32_t c) {
    return static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(c)));
}

void append_all(std::string& out, const char32_t (&sequence)[4]) {
    for (const char32_t c : sequence)
        if (c) append_utf8(out, c);
}

void append_upper(std::string& out, char32_t c) {
    if (const SpecialCase* s = special_case(c)) return append_all(out, s->upper);
    append_utf8(out, simple(utf8proc_toupper, c));
}

void append_title(std::string& out, char32_t c) {
    const SpecialCase* s = special_case(c);
    if (s && s->title[0]) return append_all(out, s->title);
    append_utf8(out, simple(utf8proc_totitle, c));
}

// Case_Ignorable, close enough to decide a final sigma: marks, formats, modifiers and the
// punctuation that stands inside words.
bool is_case_ignorable(char32_t c) {
    switch (category(c)) {
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_SK: return true;
        default: break;
    }
    for (const char32_t inside_words :
         U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13"
         U"\ufe52\ufe55\uff07\uff0e\uff1a")
        if (c == inside_words && c != 0) return true;
    return false;
}

bool sigma_is_final(std::string_view text, size_t start, size_t end) {
    for (size_t at = start;;) {
        if (at == 0) return false;
        const char32_t c = previous_code_point(text, at);
        if (is_case_ignorable(c)) continue;
        if (!is_cased(c)) return false;
        break;
    }
    for (size_t at = end; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        if (!is_case_ignorable(c)) return !is_cased(c);
    }
    return true;
}

// Lower case of the code point in [start, end) of `text`.
void append_lower(std::string& out, std::string_view text, size_t start, size_t end, char32_t c) {
    if (c == U'\u0130') {
        out += "i\xcc\x87";
    } else if (c == U'\u03a3') {
        append_utf8(out, sigma_is_final(text, start, end) ? U'\u03c2' : U'\u03c3');
    } else {
        append_utf8(out, simple(utf8proc_tolower, c));
    }
}

template <typename Fn>
void each_code_point(std::string_view text, Fn fn) {
    for (size_t at = 0; at < text.size();) {
        const size_t start = at;
        const char32_t c = next_code_point(text, at);
        fn(c, start, at);
    }
}

/// The characters of a string, made for asking often.
class CharSet {
public:
    explicit CharSet(std::string_view set) {
        for (size_t at = 0; at < set.size();) {
            const char32_t c = next_code_point(set, at);
            if (c < 128)
                ascii_[c] = true;
            else
                others_.push_back(c);
        }
        std::sort(others_.begin(), others_.end());
    }
    bool contains(char32_t c) const {
        return c < 128 ? ascii_[c] : std::binary_search(others_.begin(), others_.end(), c);
    }

private:
    std::array<bool, 128> ascii_{};
    std::vector<char32_t> others_;
};

}  // namespace

char32_t previous_code_point(std::string_view text, size_t& at) {
    at = text::previous_index(text, at);
    size_t from = at;
    return next_code_point(text, from);
}

size_t count_code_points(std::string_view text) {
    size_t n = 0;
    for (const char c : text) n += !continues(c);
    return n;
}

size_t offset_of(std::string_view text, size_t index) {
    size_t at = 0;
    while (index > 0 && at < text.size()) {
        ++at;
        while (at < text.size() && continues(text[at])) ++at;
        --index;
    }
    return at;
}

bool is_space(char32_t c) {
    if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_printable(char32_t c) {
    if (c < 0x7f) return c >= 0x20;
    switch (category(c)) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CS:
        case UTF8PROC_CATEGORY_CO:
        case UTF8PROC_CATEGORY_CN:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
        case UTF8PROC_CATEGORY_ZS: return false;
        default: return true;
    }
}

bool is_alpha(char32_t c) {
    if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    const auto k = category(c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) {
    if (c < 0x80) return c >= '0' && c <= '9';
    return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t c) {
    return is_decimal(c) || in_ranges(kOtherDigits, c);
}

bool is_numeric(char32_t c) {
    if (c < 0x80) return c >= '0' && c <= '9';
    const auto k = category(c);
    return (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO) ||
           in_ranges(kNumericIdeographs, c);
}

bool is_lower(char32_t c) {
    if (c < 0x80) return c >= 'a' && c <= 'z';
    return category(c) == UTF8PROC_CATEGORY_LL || in_ranges(kOtherLower, c);
}

bool is_upper(char32_t c) {
    if (c < 0x80) return c >= 'A' && c <= 'Z';
    return category(c) == UTF8PROC_CATEGORY_LU || in_ranges(kOtherUpper, c);
}

bool is_title(char32_t c) {
    return c >= 0x80 && category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_identifier_start(char32_t c) {
    if (c == 0x2118 || c == 0x212e) return true;  // Other_ID_Start
    return c == '_' || is_alpha(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_NL);
}

bool is_identifier_part(char32_t c) {
    if (is_identifier_start(c) || is_decimal(c)) return true;
    if (c < 0x80) return false;
    // Other_ID_Continue
    if (c == 0xb7 || c == 0x387 || c == 0x19da || (c >= 0x1369 && c <= 0x1371)) return true;
    const auto k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_PC;
}

bool is_word(char32_t c) {
    return c == '_' || is_alnum(c);
}

std::string to_upper(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    each_code_point(text, [&](char32_t c, size_t, size_t) { append_upper(out, c); });
    return out;
}

std::string to_lower(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    each_code_point(text, [&](char32_t c, size_t start, size_t end) {
        append_lower(out, text, start, end, c);
    });
    return out;
}

std::string to_title(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    bool inside_word = false;
    each_code_point(text, [&](char32_t c, size_t start, size_t end) {
        if (inside_word) {
            append_lower(out, text, start, end, c);
        } else {
            append_title(out, c);
        }
        inside_word = is_cased(c);
    });
    return out;
}

std::string to_capital(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    each_code_point(text, [&](char32_t c, size_t start, size_t end) {
        if (start == 0) {
            append_title(out, c);
        } else {
            append_lower(out, text, start, end, c);
        }
    });
    return out;
}

std::string to_swapped(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    each_code_point(text, [&](char32_t c, size_t start, size_t end) {
        if (is_upper(c)) {
            append_lower(out, text, start, end, c);
        } else if (is_lower(c)) {
            append_upper(out, c);
        } else {
            append_utf8(out, c);
        }
    });
    return out;
}

std::string to_folded(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    each_code_point(text, [&](char32_t c, size_t, size_t) {
        utf8proc_int32_t folded[8];
        int boundary = 0;
        const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8,
                                               UTF8PROC_CASEFOLD, &boundary);
        if (n <= 0) return append_utf8(out, c);
        for (int i = 0; i < n && i < 8; ++i) append_utf8(out, static_cast<char32_t>(folded[i]));
    });
    return out;
}

std::string_view strip_left(std::string_view text) {
    size_t start = 0;
    for (size_t at = 0; at < text.size(); start = at)
        if (!is_space(next_code_point(text, at))) break;
    return text.substr(start);
}

std::string_view strip_right(std::string_view text) {
    size_t end = text.size();
    for (size_t at = end; at > 0; end = at)
        if (!is_space(previous_code_point(text, at))) break;
    return text.substr(0, end);
}

std::string_view strip_left(std::string_view text, std::string_view set) {
    const CharSet chars(set);
    size_t start = 0;
    for (size_t at = 0; at < text.size(); start = at)
        if (!chars.contains(next_code_point(text, at))) break;
    return text.substr(start);
}

std::string_view strip_right(std::string_view text, std::string_view set) {
    const CharSet chars(set);
    size_t end = text.size();
    for (size_t at = end; at > 0; end = at)
        if (!chars.contains(previous_code_point(text, at))) break;
    return text.substr(0, end);
}

bool is_ascii(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) { return c & 0x80; });
}

}  // namespace exl3::jinja
