#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

// The base that a prefix such as 0x names, 0 if there is none.
int prefixed_base(std::string_view s) {
    if (s.size() < 2 || s[0] != '0') return 0;
    switch (s[1] | 0x20) {
        case 'x': return 16;
        case 'o': return 8;
        case 'b': return 2;
        default: return 0;
    }
}

// Appends the digits of a run such as 1_000 to `out` and removes them from `s`.
bool take_digits(std::string_view& s, std::string& out) {
    size_t n = 0;
    bool digit_before = false;
    for (; n < s.size(); ++n) {
        if (s[n] >= '0' && s[n] <= '9') {
            out += s[n];
            digit_before = true;
        } else if (s[n] == '_' && digit_before && n + 1 < s.size() && s[n + 1] >= '0' &&
                   s[n + 1] <= '9') {
            digit_before = false;
        } else {
            break;
        }
    }
    s.remove_prefix(n);
    return n > 0;
}

bool same_word(std::string_view s, std::string_view lower) {
    return s.size() == lower.size() && std::equal(s.begin(), s.end(), lower.begin(),
                                                  [](char a, char b) { return (a | 0x20) == b; });
}

// Which way a literal that no double can hold leaves the range.
double beyond_range(std::string_view plain) {
    const size_t e = std::min(plain.find('e'), plain.size());
    const std::string_view mantissa = plain.substr(0, e);
    const size_t point = std::min(mantissa.find('.'), mantissa.size());
    size_t first = mantissa.find_first_of("123456789");
    if (first == std::string_view::npos) return 0;
    int64_t magnitude = static_cast<int64_t>(point) - static_cast<int64_t>(first);
    const bool minus = e + 1 < plain.size() && plain[e + 1] == '-';
    for (size_t i = e + 1; i < plain.size(); ++i)
        if (plain[i] >= '0' && plain[i] <= '9' && magnitude < 1'000'000) {
            int64_t exponent = 0;
            std::from_chars(plain.data() + i, plain.data() + plain.size(), exponent);
            if (plain.size() - i > 15) exponent = 1'000'000'000;
            return minus                      ? 0
                   : exponent + magnitude > 0 ? std::numeric_limits<double>::infinity()
                                              : 0;
        }
    return magnitude > 0 ? std::numeric_limits<double>::infinity() : 0;
}

}  // namespace

Parsed parse_int(std::string_view s, int base, Int& out) {
    s = strip(s);
    const bool minus = s.starts_with('-');
    if (minus || s.starts_with('+')) s.remove_prefix(1);
    const int prefix = prefixed_base(s);
    if (prefix && (base == 0 || base == prefix)) {
        base = prefix;
        s.remove_prefix(2);
        if (s.starts_with('_')) s.remove_prefix(1);
    } else if (base == 0) {
        // Without a prefix a leading zero may only be followed by zeros.
        if (s.starts_with('0') && s.find_first_not_of("0_") != std::string_view::npos)
            return Parsed::no;
        base = 10;
    }
    Int value = 0;
    bool overflow = false, digit_before = false;
    for (const char c : s) {
        if (c == '_' && digit_before) {
            digit_before = false;
            continue;
        }
        const int digit = digit_value(c);
        if (digit >= base) return Parsed::no;
        digit_before = true;
        overflow |= __builtin_mul_overflow(value, Int{base}, &value);
        overflow |= __builtin_add_overflow(value, Int{digit}, &value);
    }
    if (!digit_before) return Parsed::no;
    if (overflow) return Parsed::too_big;
    out = minus ? -value : value;
    return Parsed::yes;
}

bool parse_real(std::string_view s, double& out) {
    s = strip(s);
    const bool minus = s.starts_with('-');
    if (minus || s.starts_with('+')) s.remove_prefix(1);
    if (same_word(s, "inf") || same_word(s, "infinity")) {
        out = std::numeric_limits<double>::infinity();
    } else if (same_word(s, "nan")) {
        out = std::numeric_limits<double>::quiet_NaN();
    } else {
        std::string plain;
        bool digits = take_digits(s, plain);
        if (s.starts_with('.')) {
            plain += '.';
            s.remove_prefix(1);
            digits |= take_digits(s, plain);
        }
        if (!digits) return false;
        if (!s.empty() && (s[0] | 0x20) == 'e') {
            plain += 'e';
            s.remove_prefix(1);
            if (s.starts_with('+') || s.starts_with('-')) {
                if (s[0] == '-') plain += '-';
                s.remove_prefix(1);
            }
            if (!take_digits(s, plain)) return false;
        }
        if (!s.empty()) return false;
        const auto r = std::from_chars(plain.data(), plain.data() + plain.size(), out);
        if (r.ec == std::errc::result_out_of_range) out = beyond_range(plain);
    }
    if (minus) out = -out;
    return true;
}

}  // namespace exl3::jinja
