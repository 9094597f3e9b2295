#include "text/jinja_literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

bool is_digit_of(char c, int base) {
    if (c >= '0' && c <= '9') return c - '0' < base;
    return base == 16 && (c | 0x20) >= 'a' && (c | 0x20) <= 'f';
}

// End of a run of digits from `at`, single underscores between them; `at` itself if there is none.
size_t digits_end(std::string_view text, size_t at, int base) {
    while (at < text.size()) {
        const bool separates = text[at] == '_' && at > 0 && is_digit_of(text[at - 1], base) &&
                               at + 1 < text.size() && is_digit_of(text[at + 1], base);
        if (!separates && !is_digit_of(text[at], base)) break;
        ++at;
    }
    return at;
}

bool starts_number(std::string_view text, size_t at) {
    return at < text.size() && is_digit_of(text[at], 10);
}

// End of "e+10" at `at`, or `at` itself.
size_t exponent_end(std::string_view text, size_t at) {
    if (at >= text.size() || (text[at] | 0x20) != 'e') return at;
    size_t digits = at + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    return starts_number(text, digits) ? digits_end(text, digits, 10) : at;
}

size_t prefixed_end(std::string_view text) {
    if (text.size() < 2 || text[0] != '0') return 0;
    const int base = (text[1] | 0x20) == 'x'   ? 16
                     : (text[1] | 0x20) == 'o' ? 8
                     : (text[1] | 0x20) == 'b' ? 2
                                               : 0;
    if (base == 0) return 0;
    size_t digits = 2;
    if (digits < text.size() && text[digits] == '_') ++digits;
    if (digits >= text.size() || !is_digit_of(text[digits], base)) return 0;
    return digits_end(text, digits, base);
}

/// Reads the escapes of one literal.
class Unescaper {
public:
    Unescaper(std::string_view raw, std::string& out) : raw_(raw), out_(out) {}

    std::string run() {
        while (at_ < raw_.size() && problem_.empty()) {
            if (raw_[at_] == '\\')
                escape();
            else
                out_ += raw_[at_++];
        }
        return problem_;
    }

private:
    void escape() {
        const size_t start = at_++;
        if (at_ == raw_.size()) {
            problem_ = "a string ends with a backslash";
            return;
        }
        const char c = raw_[at_++];
        switch (c) {
            case '\n': return;  // a continued line
            case 'a': out_ += '\a'; return;
            case 'b': out_ += '\b'; return;
            case 'f': out_ += '\f'; return;
            case 'n': out_ += '\n'; return;
            case 'r': out_ += '\r'; return;
            case 't': out_ += '\t'; return;
            case 'v': out_ += '\v'; return;
            case '\\':
            case '\'':
            case '"': out_ += c; return;
            case 'x': return code_point(start, 2);
            case 'u': return code_point(start, 4);
            case 'U': return code_point(start, 8);
            case 'N': problem_ = "character names (\\N{...}) are not supported"; return;
            default: break;
        }
        if (c >= '0' && c <= '7') return octal();
        out_ += '\\';
        at_ = start + 1;
        if (c & 0x80) {
            // Jinja escapes what is not ASCII before it undoes escapes: the backslash in front
            // of such a character doubles, and the character stays behind as text.
            const auto point = static_cast<uint32_t>(next_code_point(raw_, at_));
            out_ += point < 0x100     ? fmt::format("x{:02x}", point)
                    : point < 0x10000 ? fmt::format("u{:04x}", point)
                                      : fmt::format("U{:08x}", point);
        }
    }
    void code_point(size_t start, size_t digits) {
        const std::string_view hex = raw_.substr(at_, digits);
        uint32_t c = 0;
        const auto r = std::from_chars(hex.data(), hex.data() + hex.size(), c, 16);
        if (hex.size() < digits || r.ptr != hex.data() + digits || c > 0x10ffff) {
            problem_ = fmt::format("invalid escape '{}' in a string",
                                   raw_.substr(start, std::min(raw_.size() - start, digits + 2)));
            return;
        }
        append_utf8(out_, c);
        at_ += digits;
    }
    void octal() {
        --at_;
        uint32_t c = 0;
        for (int i = 0; i < 3 && at_ < raw_.size() && raw_[at_] >= '0' && raw_[at_] <= '7'; ++i)
            c = c * 8 + static_cast<uint32_t>(raw_[at_++] - '0');
        append_utf8(out_, c);
    }

    std::string_view raw_;
    std::string& out_;
    size_t at_ = 0;
    std::string problem_;
};

}  // namespace

NumberLiteral scan_number(std::string_view text, bool may_be_real) {
    const size_t whole = digits_end(text, 0, 10);
    if (may_be_real) {
        size_t end = whole;
        if (end < text.size() && text[end] == '.' && starts_number(text, end + 1))
            end = digits_end(text, end + 1, 10);
        end = exponent_end(text, end);
        if (end > whole) return {end, true};
    }
    if (const size_t end = prefixed_end(text)) return {end, false};
    if (text[0] != '0') return {whole, false};
    // A leading zero stands alone or among zeros.
    size_t end = 1;
    while (end < whole && (text[end] == '0' || (text[end] == '_' && text[end + 1] == '0'))) ++end;
    return {end, false};
}

std::string unescape_literal(std::string_view raw, std::string& value) {
    return Unescaper(raw, value).run();
}

}  // namespace exl3::jinja
