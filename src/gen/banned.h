#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace exl3 {

/// Looks for phrases that must not appear in text that arrives in pieces. Case does not matter:
/// both sides are lowered code point by code point.
class BannedMatcher {
public:
    explicit BannedMatcher(const std::vector<std::string>& phrases);
    bool empty() const { return phrases_.empty(); }

    struct Match {
        size_t begin = 0, end = 0;  ///< bytes of the text since the start or the last restart()
    };
    /// Takes the next piece (valid UTF-8). Returns the first phrase that is complete in it, of
    /// several that end together the longest; the rest of the piece is then not looked at.
    std::optional<Match> push(std::string_view piece);
    /// Bytes at the end of the text that may still become a phrase.
    size_t open() const;
    /// No text yet, or none that counts.
    void restart();

private:
    struct Phrase {
        std::u32string text;       ///< lowered
        std::vector<size_t> back;  ///< [i]: longest proper border of the first i code points
        size_t matched = 0;        ///< code points of it that end the text so far
    };
    std::vector<Phrase> phrases_;
    std::vector<size_t> starts_;  ///< byte offsets of the last code points, a ring
    size_t points_ = 0, bytes_ = 0;
};

}  // namespace exl3
