#include "grammar/char_set.h"

#include <utf8proc.h>

#include <algorithm>

namespace exl3 {

CharSet CharSet::of(std::u32string_view characters) {
    CharSet s;
    for (const char32_t c : characters) s.ranges_.push_back({c, c});
    s.normalize();
    return s;
}

CharSet& CharSet::add(char32_t first, char32_t last) {
    ranges_.push_back({first, last});
    normalize();
    return *this;
}

CharSet& CharSet::add(const CharSet& other) {
    ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
    normalize();
    return *this;
}

void CharSet::normalize() {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.first < b.first; });
    std::vector<Range> merged;
    for (const Range& r : ranges_) {
        if (r.first > r.last) continue;
        if (!merged.empty() && r.first <= merged.back().last + 1)
            merged.back().last = std::max(merged.back().last, r.last);
        else
            merged.push_back(r);
    }
    ranges_ = std::move(merged);
}

CharSet CharSet::negated() const {
    CharSet s;
    char32_t next = 0;
    for (const Range& r : ranges_) {
        if (r.first > next) s.ranges_.push_back({next, r.first - 1});
        next = r.last + 1;
    }
    if (next <= kLastCodePoint) s.ranges_.push_back({next, kLastCodePoint});
    return s;
}

CharSet CharSet::without(const CharSet& other) const {
    return common(other.negated());
}

CharSet CharSet::common(const CharSet& other) const {
    CharSet s;
    for (const Range& a : ranges_)
        for (const Range& b : other.ranges_) {
            const Range both = {std::max(a.first, b.first), std::min(a.last, b.last)};
            if (both.first <= both.last) s.ranges_.push_back(both);
        }
    s.normalize();
    return s;
}

CharSet CharSet::any_case() const {
    CharSet s = *this;
    for (const Range& r : ranges_)
        // Nothing beyond the letters of the first planes has case.
        for (char32_t c = r.first; c <= std::min<char32_t>(r.last, 0x1FFFF); ++c) {
            const auto code = static_cast<utf8proc_int32_t>(c);
            const auto lower = static_cast<char32_t>(utf8proc_tolower(code));
            const auto upper = static_cast<char32_t>(utf8proc_toupper(code));
            if (lower != c) s.ranges_.push_back({lower, lower});
            if (upper != c) s.ranges_.push_back({upper, upper});
        }
    s.normalize();
    return s;
}

bool CharSet::has(char32_t c) const {
    return std::any_of(ranges_.begin(), ranges_.end(),
                       [c](const Range& r) { return r.first <= c && c <= r.last; });
}

namespace {

ByteSequence encode(char32_t c) {
    std::string bytes;
    append_utf8(bytes, c);
    ByteSequence s{.count = static_cast<int>(bytes.size())};
    for (size_t i = 0; i < bytes.size(); ++i) s.first[i] = static_cast<uint8_t>(bytes[i]);
    return s;
}

// Splits a range of code points with equally long forms until every byte but the last ones that
// run through all of 80..BF has one value.
void split(char32_t first, char32_t last, std::vector<ByteSequence>& out) {
    const ByteSequence low = encode(first), high = encode(last);
    for (int tail = 1; tail < low.count; ++tail) {
        const char32_t block = (char32_t{1} << (6 * tail)) - 1;
        if ((first & ~block) == (last & ~block)) break;
        if ((first & block) != 0) {
            split(first, first | block, out);
            return split((first | block) + 1, last, out);
        }
        if ((last & block) != block) {
            split(first, (last & ~block) - 1, out);
            return split(last & ~block, last, out);
        }
    }
    ByteSequence s = low;
    for (int i = 0; i < low.count; ++i) s.last[i] = high.first[i];
    out.push_back(s);
}

}  // namespace

std::vector<ByteSequence> utf8_sequences(const CharSet& set) {
    std::vector<ByteSequence> out;
    constexpr CharSet::Range kLengths[] = {
        {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, kLastCodePoint}};
    for (const CharSet::Range& r : set.ranges())
        for (const CharSet::Range& l : kLengths) {
            const char32_t first = std::max(r.first, l.first), last = std::min(r.last, l.last);
            if (first <= last) split(first, last, out);
        }
    return out;
}

std::u32string to_code_points(std::string_view text) {
    std::u32string out;
    for (size_t i = 0; i < text.size();) {
        utf8proc_int32_t c = 0;
        const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + i,
                                        static_cast<utf8proc_ssize_t>(text.size() - i), &c);
        out.push_back(n > 0 ? static_cast<char32_t>(c) : U'\uFFFD');
        i += n > 0 ? static_cast<size_t>(n) : 1;
    }
    return out;
}

void append_utf8(std::string& out, char32_t c) {
    if (c < 0x80) {
        out += static_cast<char>(c);
        return;
    }
    const int tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    const uint8_t lead = tail == 1 ? 0xC0 : tail == 2 ? 0xE0 : 0xF0;
    out += static_cast<char>(lead | (c >> (6 * tail)));
    for (int i = tail - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F));
}

}  // namespace exl3
