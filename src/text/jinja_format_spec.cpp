#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_format.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

constexpr int kMaxWidth = 1 << 28;     // any more is refused before it is built
constexpr int kMaxPrecision = 100000;  // digits of a float; the longest double has 1074

std::string pad(Runtime& rt, std::string_view text, size_t length, const FormatSpec& spec,
                char align) {
    const auto width = static_cast<size_t>(spec.width);
    if (length >= width) return std::string(text);
    const size_t missing = width - length;
    rt.check_size(Int(missing) * Int(spec.fill.size()) + Int(text.size()));
    const size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
    std::string out;
    for (size_t i = 0; i < left; ++i) out += spec.fill;
    out += text;
    for (size_t i = left; i < missing; ++i) out += spec.fill;
    return out;
}

// Puts a separator between every `size` digits of the integer part, which ends at `end`.
std::string grouped(std::string_view digits, size_t end, char separator, size_t size) {
    std::string out;
    for (size_t i = 0; i < end; ++i) {
        if (i > 0 && (end - i) % size == 0) out += separator;
        out += digits[i];
    }
    return out.append(digits.substr(end));
}

// Sign, prefix and digits of a number, padded; '=' puts the fill between prefix and digits.
std::string lay_out(Runtime& rt, bool minus, std::string_view prefix, std::string digits,
                    const FormatSpec& spec) {
    std::string head = minus ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
    head += prefix;
    size_t end = 0;
    while (end < digits.size() && std::isalnum(static_cast<unsigned char>(digits[end]))) ++end;
    const bool decimal_digits =
        !(spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X');
    const bool finite =
        !digits.empty() && (std::isdigit(static_cast<unsigned char>(digits[0])) || !decimal_digits);
    const size_t size = decimal_digits ? 3 : 4;
    const bool zeros = spec.align == '=' && spec.fill == "0";
    if (spec.group && finite) {
        if (const size_t e = digits.find('e'); decimal_digits && e < end) end = e;
        const std::string tail = digits.substr(end);
        digits.resize(end);
        std::string body = grouped(digits, end, spec.group, size);
        const auto width = static_cast<size_t>(spec.width);
        if (zeros) rt.check_size(spec.width * Int{2});
        while (zeros && head.size() + body.size() + tail.size() < width) {
            const size_t short_by = width - head.size() - body.size() - tail.size();
            digits.insert(0, std::max<size_t>(1, short_by * size / (size + 1)), '0');
            body = grouped(digits, digits.size(), spec.group, size);
        }
        digits = body + tail;
    }
    if (spec.align == '=') {
        FormatSpec inner = spec;
        inner.width = std::max(0, spec.width - static_cast<int>(head.size()));
        return head + pad(rt, digits, digits.size(), inner, '>');
    }
    head += digits;
    return pad(rt, head, head.size(), spec, spec.align ? spec.align : '>');
}

std::string in_base(Int i, unsigned base, bool upper) {
    auto rest = i < 0 ? -static_cast<unsigned __int128>(i) : static_cast<unsigned __int128>(i);
    const char* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    std::string out;
    do out += digits[static_cast<size_t>(rest % base)];
    while ((rest /= base) > 0);
    std::reverse(out.begin(), out.end());
    return out;
}

std::string chars(double d, std::chars_format format, int precision) {
    std::string out(static_cast<size_t>(precision) + 400, '\0');
    const auto end = std::to_chars(out.data(), out.data() + out.size(), d, format, precision).ptr;
    out.resize(static_cast<size_t>(end - out.data()));
    return out;
}

int decimal_exponent(std::string_view scientific) {
    const size_t e = scientific.find('e');
    int exponent = 0;
    std::from_chars(scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1),
                    scientific.data() + scientific.size(), exponent);
    return exponent;
}

void drop_trailing_zeros(std::string& digits) {
    const size_t e = std::min(digits.find('e'), digits.size());
    const std::string tail = digits.substr(e);
    digits.resize(e);
    if (digits.find('.') != std::string::npos) {
        while (digits.back() == '0') digits.pop_back();
        if (digits.back() == '.') digits.pop_back();
    }
    digits += tail;
}

// %g. With `point`, as for a float without a type, positional notation keeps one decimal.
std::string general(double d, int precision, bool keep_zeros, bool point) {
    precision = std::max(precision, 1);
    std::string digits = chars(d, std::chars_format::scientific, precision - 1);
    const int x = decimal_exponent(digits);
    if (x >= -4 && x < precision - (point ? 1 : 0))
        digits = chars(d, std::chars_format::fixed, precision - 1 - x);
    if (!keep_zeros) drop_trailing_zeros(digits);
    if (point && digits.find_first_of(".e") == std::string::npos) digits += ".0";
    return digits;
}

std::string real_digits(double d, const FormatSpec& spec) {
    const int precision = spec.precision < 0 ? 6 : spec.precision;
    switch (spec.type) {
        case 'e':
        case 'E': return chars(d, std::chars_format::scientific, precision);
        case 'f':
        case 'F':
        case '%': return chars(d, std::chars_format::fixed, precision);
        case 0:
            if (spec.precision < 0) return repr_of_real(d);
            return general(d, precision, spec.alternate, true);
        default: return general(d, precision, spec.alternate, false);
    }
}

bool is_align(char c) {
    return c == '<' || c == '>' || c == '^' || c == '=';
}

int number(Runtime& rt, std::string_view& s, int limit) {
    int64_t n = 0;
    while (!s.empty() && s[0] >= '0' && s[0] <= '9') {
        n = std::min<int64_t>(n * 10 + (s[0] - '0'), int64_t{1} << 40);
        s.remove_prefix(1);
    }
    if (n > limit) rt.fail(Fault::value, "the width or precision of the format is too large");
    return static_cast<int>(n);
}

FormatSpec parse_spec(Runtime& rt, std::string_view s, const Value& v) {
    FormatSpec spec;
    if (!s.empty()) {
        size_t after_fill = 0;
        next_code_point(s, after_fill);
        if (after_fill < s.size() && is_align(s[after_fill])) {
            spec.fill = s.substr(0, after_fill);
            spec.align = s[after_fill];
            s.remove_prefix(after_fill + 1);
        } else if (is_align(s[0])) {
            spec.align = s[0];
            s.remove_prefix(1);
        }
    }
    const auto take = [&](std::string_view any) {
        if (s.empty() || any.find(s[0]) == std::string_view::npos) return '\0';
        const char c = s[0];
        s.remove_prefix(1);
        return c;
    };
    if (const char sign = take("+- ")) spec.sign = sign;
    if (take("#")) spec.alternate = true;
    if (take("0") && !spec.align) {
        spec.fill = "0";
        spec.align = v.is_string() ? '<' : '=';
    }
    spec.width = number(rt, s, kMaxWidth);
    spec.group = take(",_");
    if (take(".")) {
        if (s.empty() || !is_decimal(static_cast<char32_t>(static_cast<uint8_t>(s[0]))))
            rt.fail(Fault::value, "Format specifier missing precision");
        spec.precision = number(rt, s, v.is_string() ? kMaxWidth : kMaxPrecision);
    }
    if (!s.empty()) spec.type = s[0];
    if (s.size() > 1)
        rt.fail(Fault::value, fmt::format("Invalid format specifier '{}' for object of type '{}'",
                                          s, type_name(v)));
    return spec;
}

[[noreturn]] void unknown_type(Runtime& rt, const FormatSpec& spec, const Value& v) {
    rt.fail(Fault::value, fmt::format("Unknown format code '{}' for object of type '{}'",
                                      std::string(1, spec.type), type_name(v)));
}

}  // namespace

std::string format_text(Runtime& rt, std::string_view text, const FormatSpec& spec) {
    if (spec.precision >= 0)
        text = text.substr(0, offset_of(text, static_cast<size_t>(spec.precision)));
    return pad(rt, text, count_code_points(text), spec, spec.align ? spec.align : '<');
}

std::string format_int(Runtime& rt, Int i, const FormatSpec& spec) {
    switch (spec.type) {
        case 'b': return lay_out(rt, i < 0, spec.alternate ? "0b" : "", in_base(i, 2, false), spec);
        case 'o': return lay_out(rt, i < 0, spec.alternate ? "0o" : "", in_base(i, 8, false), spec);
        case 'x':
            return lay_out(rt, i < 0, spec.alternate ? "0x" : "", in_base(i, 16, false), spec);
        case 'X': return lay_out(rt, i < 0, spec.alternate ? "0X" : "", in_base(i, 16, true), spec);
        default: {
            std::string digits = in_base(i, 10, false);
            const auto least = static_cast<size_t>(std::max(spec.precision, 0));
            if (digits.size() < least) digits.insert(0, least - digits.size(), '0');
            return lay_out(rt, i < 0, "", std::move(digits), spec);
        }
    }
}

std::string format_real(Runtime& rt, double d, const FormatSpec& spec) {
    const bool minus = std::signbit(d) && !std::isnan(d);
    double size = std::abs(d);
    if (spec.type == '%') size *= 100;
    std::string digits;
    if (std::isnan(size) || std::isinf(size)) {
        digits = std::isnan(size) ? "nan" : "inf";
    } else {
        rt.check_size(spec.precision);
        digits = real_digits(size, spec);
    }
    if (spec.alternate && digits.find('.') == std::string::npos && std::isfinite(size))
        digits.insert(std::min(digits.find('e'), digits.size()), ".");
    if (spec.type == '%') digits += '%';
    if (spec.type == 'E' || spec.type == 'F' || spec.type == 'G')
        std::transform(digits.begin(), digits.end(), digits.begin(),
                       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return lay_out(rt, minus, "", std::move(digits), spec);
}

std::string format_value(Runtime& rt, const Value& v, std::string_view text) {
    if (text.empty()) return to_text(rt, v);
    if (!v.is_string() && !v.is_number())
        rt.fail(Fault::type,
                fmt::format("unsupported format string passed to {}.__format__", type_name(v)));
    FormatSpec spec = parse_spec(rt, text, v);
    if (v.is_string()) {
        if (spec.type && spec.type != 's') unknown_type(rt, spec, v);
        if (spec.align == '=' || spec.sign != '-' || spec.alternate || spec.group)
            rt.fail(Fault::value, "the format specifier is for numbers, not strings");
        return format_text(rt, v.as_text(), spec);
    }
    const std::string_view kinds = v.is_int() ? "bcdoxXn" : "";
    if (v.is_int() && (!spec.type || kinds.find(spec.type) != std::string_view::npos)) {
        if (spec.precision >= 0)
            rt.fail(Fault::value, "Precision not allowed in integer format specifier");
        if (spec.type != 'c') return format_int(rt, v.as_int(), spec);
        if (v.as_int() < 0 || v.as_int() > 0x10ffff)
            rt.fail(Fault::overflow, "%c arg not in range(0x110000)");
        std::string character;
        append_utf8(character, static_cast<char32_t>(v.as_int()));
        return format_text(rt, character, spec);
    }
    if (spec.type && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos)
        unknown_type(rt, spec, v);
    if (spec.type == 'n') spec.type = 'g';
    return format_real(rt, v.as_double(), spec);
}

std::string ascii_repr(Runtime& rt, const Value& v) {
    const std::string text = repr(rt, v);
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const auto c = static_cast<uint32_t>(next_code_point(text, at));
        if (c < 0x80)
            out += static_cast<char>(c);
        else if (c < 0x100)
            out += fmt::format("\\x{:02x}", c);
        else if (c < 0x10000)
            out += fmt::format("\\u{:04x}", c);
        else
            out += fmt::format("\\U{:08x}", c);
    }
    return out;
}

}  // namespace exl3::jinja
