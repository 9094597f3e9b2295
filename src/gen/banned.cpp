#include "gen/banned.h"

#include <algorithm>

#include "text/unicode.h"

namespace exl3 {
BannedMatcher::BannedMatcher(const std::vector<std::string>& phrases) {
    size_t longest = 0;
    for (const std::string& phrase : phrases) {
        const std::string valid = text::replace_invalid_utf8(phrase);
        Phrase p;
        for (size_t i = 0; i < valid.size();)
            p.text += text::lower(text::next_code_point(valid, i));
        if (p.text.empty()) continue;
        // Knuth, Morris and Pratt, Fast Pattern Matching in Strings, SIAM J. Comput. 6 (1977).
        p.back.assign(p.text.size() + 1, 0);
        for (size_t i = 1, k = 0; i < p.text.size(); ++i) {
            while (k > 0 && p.text[i] != p.text[k]) k = p.back[k];
            if (p.text[i] == p.text[k]) ++k;
            p.back[i + 1] = k;
        }
        longest = std::max(longest, p.text.size());
        phrases_.push_back(std::move(p));
    }
    starts_.resize(longest + 1);
}

void BannedMatcher::restart() {
    for (Phrase& p : phrases_) p.matched = 0;
    points_ = bytes_ = 0;
}

std::optional<BannedMatcher::Match> BannedMatcher::push(std::string_view piece) {
    if (empty()) return std::nullopt;
    for (size_t i = 0; i < piece.size();) {
        starts_[points_++ % starts_.size()] = bytes_;
        const size_t from = i;
        const char32_t c = text::lower(text::next_code_point(piece, i));
        bytes_ += i - from;
        size_t longest = 0;
        for (Phrase& p : phrases_) {
            if (p.matched == p.text.size()) p.matched = p.back[p.matched];
            while (p.matched > 0 && p.text[p.matched] != c) p.matched = p.back[p.matched];
            if (p.text[p.matched] == c) ++p.matched;
            if (p.matched == p.text.size()) longest = std::max(longest, p.matched);
        }
        if (longest > 0) return Match{starts_[(points_ - longest) % starts_.size()], bytes_};
    }
    return std::nullopt;
}

size_t BannedMatcher::open() const {
    size_t longest = 0;
    for (const Phrase& p : phrases_)
        longest = std::max(longest, p.matched == p.text.size() ? p.back[p.matched] : p.matched);
    return longest == 0 ? 0 : bytes_ - starts_[(points_ - longest) % starts_.size()];
}

}  // namespace exl3
