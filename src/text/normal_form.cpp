#include "text/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <utility>
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

// Code points that utf8proc decomposes or orders and the reference implementation, whose tables are
// of an older Unicode, leaves alone. Models have seen them so.
constexpr std::pair<char32_t, char32_t> kNewer[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},
    {0xAB69, 0xAB69},   {0x10781, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
    {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x1145E, 0x1145E}, {0x11938, 0x11938}, {0x1E030, 0x1E06D},
    {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

bool is_newer(utf8proc_int32_t point) {
    const auto c = static_cast<char32_t>(point);
    if (c < kNewer[0].first) return false;
    const auto after = std::upper_bound(std::begin(kNewer), std::end(kNewer), c,
                                        [](char32_t x, const auto& r) { return x < r.first; });
    return after != std::begin(kNewer) && c <= std::prev(after)->second;
}

// Nothing composes with these, though utf8proc would: it drops U+11A7, the empty Hangul tail,
// behind a syllable, and joins U+11930 with U+11935.
bool never_composes(utf8proc_int32_t c) {
    return c == 0x11A7 || c == 0x11930 || is_newer(c);
}

int combining_class(utf8proc_int32_t c) {
    return is_newer(c) ? 0 : utf8proc_get_property(c)->combining_class;
}

void put_in_order(std::vector<utf8proc_int32_t>& points) {
    const auto class_of = combining_class;
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

void compose(std::vector<utf8proc_int32_t>& points) {
    size_t kept = 0;
    for (size_t begin = 0; begin < points.size();) {
        size_t end = begin + 1;
        while (end < points.size() && !never_composes(points[end])) ++end;
        const auto length = utf8proc_normalize_utf32(
            points.data() + begin, static_cast<utf8proc_ssize_t>(end - begin),
            static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
        std::copy_n(points.begin() + static_cast<ptrdiff_t>(begin), length,
                    points.begin() + static_cast<ptrdiff_t>(kept));
        kept += static_cast<size_t>(length);
        begin = end;
    }
    points.resize(kept);
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
        if (n < 0 || n > 32 || is_newer(c))
            points.push_back(c);
        else
            points.insert(points.end(), parts, parts + n);
    }
    put_in_order(points);
    if (form == NormalForm::nfc || form == NormalForm::nfkc) compose(points);
    for (const utf8proc_int32_t c : points) append_utf8(out, static_cast<char32_t>(c));
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
