#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace exl3 {

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

/// A set of Unicode code points as sorted, disjoint, inclusive ranges. Surrogates may be in it;
/// they have no UTF-8 form and match nothing.
class CharSet {
public:
    struct Range {
        char32_t first = 0, last = 0;
        bool operator==(const Range&) const = default;
    };
    CharSet() = default;
    CharSet(char32_t first, char32_t last) : ranges_{{first, last}} {}
    static CharSet of(std::u32string_view characters);
    static CharSet all() { return {0, kLastCodePoint}; }

    CharSet& add(char32_t first, char32_t last);
    CharSet& add(const CharSet& other);
    CharSet negated() const;
    CharSet without(const CharSet& other) const;
    CharSet common(const CharSet& other) const;
    /// Both cases of every letter in it (simple case mapping).
    CharSet any_case() const;
    bool has(char32_t c) const;
    bool empty() const { return ranges_.empty(); }
    const std::vector<Range>& ranges() const { return ranges_; }

private:
    void normalize();
    std::vector<Range> ranges_;
};

/// Bytes b[i] with first[i] <= b[i] <= last[i], one after the other.
struct ByteSequence {
    int count = 0;
    uint8_t first[4] = {}, last[4] = {};
};
/// The UTF-8 forms of the code points in a set, as few sequences of byte ranges.
std::vector<ByteSequence> utf8_sequences(const CharSet& set);

/// UTF-8 to code points; bytes that are no UTF-8 become U+FFFD.
std::u32string to_code_points(std::string_view text);
/// Appends the UTF-8 form.
void append_utf8(std::string& out, char32_t c);

}  // namespace exl3
