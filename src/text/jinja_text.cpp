#include "text/jinja_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

bool ends_line(char32_t c) {
    return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

// Removes everything from `open` to the next `close`, again and again.
std::string without(std::string_view text, std::string_view open, std::string_view close) {
    std::string out;
    size_t at = 0;
    for (;;) {
        const size_t start = find_text(text, open, at);
        if (start == std::string_view::npos) break;
        const size_t end = find_text(text, close, start + open.size());
        if (end == std::string_view::npos) break;
        out += text.substr(at, start - at);
        at = end + close.size();
    }
    return out.append(text.substr(at));
}

// What a character reference such as "lt" or "#39" stands for; empty if unknown.
std::string entity(std::string_view name) {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"amp", "&"},   {"lt", "<"},   {"gt", ">"},
        {"quot", "\""}, {"apos", "'"}, {"nbsp", "\xc2\xa0"}};
    for (const auto& [key, text] : kNames)
        if (name == key) return std::string(text);
    if (!name.starts_with('#') || name.size() < 2) return {};
    const bool hex = (name[1] | 0x20) == 'x';
    const std::string_view digits = name.substr(hex ? 2 : 1);
    uint32_t c = 0;
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), c, hex ? 16 : 10);
    if (r.ec != std::errc() || r.ptr != digits.data() + digits.size() || c == 0 || c > 0x10ffff ||
        (c >= 0xd800 && c < 0xe000))
        return {};
    std::string out;
    append_utf8(out, c);
    return out;
}

std::string unescape(std::string_view text) {
    constexpr size_t kLongest = 10;
    std::string out;
    for (size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '&') {
            const size_t end = text.substr(at, kLongest).find(';');
            const std::string with =
                end == std::string_view::npos ? "" : entity(text.substr(at + 1, end - 1));
            if (!with.empty()) {
                out += with;
                at += end;
                continue;
            }
        }
        out += text[at];
    }
    return out;
}

}  // namespace

size_t find_text(std::string_view text, std::string_view sub, size_t from) {
    if (from > text.size()) return std::string_view::npos;
    if (sub.empty()) return from;
    const void* at = memmem(text.data() + from, text.size() - from, sub.data(), sub.size());
    return at ? static_cast<size_t>(static_cast<const char*>(at) - text.data())
              : std::string_view::npos;
}

size_t find_last(Runtime& rt, std::string_view text, std::string_view sub) {
    rt.work(text.size());
    rt.work(text.size() * (sub.size() / 16));
    return text.rfind(sub);
}

std::string replace_text(Runtime& rt, std::string_view text, std::string_view old,
                         std::string_view with, Int count) {
    rt.work(text.size());
    std::string out;
    size_t at = 0;
    if (count < 0) count = Int{1} << 62;
    if (old.empty()) {
        for (; count > 0; --count) {
            rt.heap.check(out.size() + with.size());
            rt.step();
            out += with;
            if (at >= text.size()) break;
            const size_t start = at;
            next_code_point(text, at);
            out += text.substr(start, at - start);
        }
    }
    for (size_t next = 0; !old.empty() && count > 0; --count, at = next + old.size()) {
        next = find_text(text, old, at);
        if (next == std::string_view::npos) break;
        rt.heap.check(out.size() + with.size());
        rt.work(with.size() + 16);
        out += text.substr(at, next - at);
        out += with;
    }
    if (at < text.size()) out += text.substr(at);
    return out;
}

void split_spaces(std::string_view text, Int limit, bool from_right, const TakePiece& take) {
    const auto trimmed = [&](std::string_view s) {
        return from_right ? strip_right(s) : strip_left(s);
    };
    text = trimmed(text);
    for (; !text.empty(); text = trimmed(text)) {
        if (limit == 0) return take(text);
        if (limit > 0) --limit;
        size_t at = from_right ? text.size() : 0;
        while (from_right ? at > 0 : at < text.size()) {
            size_t next = at;
            const char32_t c =
                from_right ? previous_code_point(text, next) : next_code_point(text, next);
            if (is_space(c)) break;
            at = next;
        }
        take(from_right ? text.substr(at) : text.substr(0, at));
        text = from_right ? text.substr(0, at) : text.substr(at);
    }
}

void split_at(Runtime& rt, std::string_view text, std::string_view separator, Int limit,
              bool from_right, const TakePiece& take) {
    for (; limit != 0; --limit) {
        // From the right each search looks at what it cuts off only, unless nothing is found.
        const size_t at = from_right ? find_last(rt, text, separator) : find_text(text, separator);
        if (at == std::string_view::npos) break;
        const std::string_view after = text.substr(at + separator.size());
        take(from_right ? after : text.substr(0, at));
        text = from_right ? text.substr(0, at) : after;
    }
    take(text);
}

void for_each_line(std::string_view text,
                   const std::function<void(std::string_view, std::string_view)>& take) {
    size_t start = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = at;
        const char32_t c = next_code_point(text, at);
        if (!ends_line(c)) continue;
        if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
        take(text.substr(start, end - start), text.substr(end, at - end));
        start = at;
    }
    if (start < text.size()) take(text.substr(start), {});
}

size_t count_words(std::string_view text) {
    size_t n = 0;
    bool inside = false;
    for (size_t at = 0; at < text.size();) {
        const bool word = is_word(next_code_point(text, at));
        n += word && !inside;
        inside = word;
    }
    return n;
}

std::string title_words(std::string_view text) {
    const auto separates = [](char32_t c) {
        return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    };
    std::string out;
    for (size_t at = 0; at < text.size();) {
        // A run of separators or of others: its first character in upper case, the rest in lower.
        const size_t start = at;
        const bool kind = separates(next_code_point(text, at));
        const size_t second = at;
        for (size_t next = at; next < text.size(); at = next)
            if (separates(next_code_point(text, next)) != kind) break;
        out += to_upper(text.substr(start, second - start));
        out += to_lower(text.substr(second, at - second));
    }
    return out;
}

std::string strip_tags(std::string_view text) {
    const std::string bare = without(without(text, "<!--", "-->"), "<", ">");
    std::string out;
    split_spaces(bare, -1, false, [&](std::string_view word) {
        if (!out.empty()) out += ' ';
        out += word;
    });
    return unescape(out);
}

}  // namespace exl3::jinja
