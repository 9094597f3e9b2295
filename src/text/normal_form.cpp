#include "text/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "text/unicode.h"

namespace exl3::text {
namespace {

// Code points that the form leaves alone and that never join or reorder with a neighbour from the
// same ranges. Text between others is copied.
bool is_inert(char32_t c, NormalForm form) {
    if (c < 0x80) return true;
    if (form != NormalForm::nfc) return false;
    return c < 0x300 || (c >= 0x400 && c < 0x483) || (c >= 0x4E00 && c < 0xA000) ||
           (c >= 0xAC00 && c < 0xD7A4);
}

void put_in_order(std::vector<utf8proc_int32_t>& points) {
    const auto class_of = [](utf8proc_int32_t c) {
        return utf8proc_get_property(c)->combining_class;
    };
    for (size_t i = 0; i < points.size();) {
        if (class_of(points[i]) == 0) {
            ++i;
            continue;
        }
        size_t end = i + 1;
        while (end < points.size() && class_of(points[end]) != 0) ++end;
        if (end - i > 1)
            std::stable_sort(points.begin() + static_cast<ptrdiff_t>(i),
                             points.begin() + static_cast<ptrdiff_t>(end),
                             [&](auto a, auto b) { return class_of(a) < class_of(b); });
        i = end;
    }
}

void append_normalized(std::string& out, std::string_view text, NormalForm form) {
    const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
    const auto options =
        static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
    std::vector<utf8proc_int32_t> points;
    points.reserve(text.size());
    for (size_t i = 0; i < text.size();) {
        utf8proc_int32_t parts[32];  // the longest compatibility decomposition has 18
        int boundary = 0;
        const auto c = static_cast<utf8proc_int32_t>(next_code_point(text, i));
        const auto n = utf8proc_decompose_char(c, parts, 32, options, &boundary);
        if (n < 0 || n > 32)
            points.push_back(c);
        else
            points.insert(points.end(), parts, parts + n);
    }
    put_in_order(points);
    auto length = static_cast<utf8proc_ssize_t>(points.size());
    if (form == NormalForm::nfc || form == NormalForm::nfkc)
        length = utf8proc_normalize_utf32(
            points.data(), length,
            static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    for (utf8proc_ssize_t i = 0; i < length; ++i)
        append_utf8(out, static_cast<char32_t>(points[static_cast<size_t>(i)]));
}

}  // namespace

void normalize(std::string& text, NormalForm form) {
    const std::string_view s = text;
    std::string out;
    size_t copied = 0;
    size_t last = 0;  // start of the code point before i: a mark at i may join with it
    for (size_t i = 0; i < s.size();) {
        const size_t here = i;
        if (is_inert(next_code_point(s, i), form)) {
            last = here;
            continue;
        }
        size_t end = i;
        while (i < s.size() && !is_inert(next_code_point(s, i), form)) end = i;
        out.append(s.substr(copied, last - copied));
        append_normalized(out, s.substr(last, end - last), form);
        copied = last = i = end;
    }
    if (copied == 0 && out.empty()) return;
    out.append(s.substr(copied));
    text = std::move(out);
}

void lowercase(std::string& text) {
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < text.size();) {
        const char32_t c = next_code_point(text, i);
        append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
        if (c == 0x130) append_utf8(out, 0x307);  // the only lower case of two code points
    }
    text = std::move(out);
}

}  // namespace exl3::text
