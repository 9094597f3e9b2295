#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace exl3::text {
namespace {

bool word_before(std::string_view text, size_t at) {
    if (at == 0) return false;
    size_t i = previous_index(text, at);
    return is_word(next_code_point(text, i));
}

bool word_behind(std::string_view text, size_t at) {
    return at < text.size() && is_word(next_code_point(text, at));
}

size_t skip_space_left(std::string_view text, size_t at) {
    while (at > 0) {
        const size_t before = previous_index(text, at);
        size_t i = before;
        if (!is_space(next_code_point(text, i))) break;
        at = before;
    }
    return at;
}

size_t skip_space_right(std::string_view text, size_t at) {
    for (size_t i = at; i < text.size() && is_space(next_code_point(text, i));) at = i;
    return at;
}

}  // namespace

// ---- StringMatcher

void StringMatcher::add(std::string_view text, uint32_t value) {
    if (!trie_.contains(text)) trie_.set(text, value);
}

std::optional<StringMatcher::Match> StringMatcher::find(std::string_view text, size_t from) const {
    if (trie_.empty()) return std::nullopt;
    for (size_t begin = from; begin < text.size(); ++begin) {
        uint32_t node = trie_.first(text[begin]);
        Match best{begin, begin, Trie::kNone};
        for (size_t i = begin + 1; node != Trie::kNone; ++i) {
            if (trie_.value(node) != Trie::kNone) best = {begin, i, trie_.value(node)};
            if (i == text.size()) break;
            node = trie_.next(node, text[i]);
        }
        if (best.value != Trie::kNone) return best;
    }
    return std::nullopt;
}

// ---- AddedTokens

void AddedTokens::add(AddedToken token) {
    if (token.content.empty()) return;
    const auto known = by_content_.find(token.content);
    if (known != by_content_.end()) {
        tokens_[known->second] = std::move(token);
        by_id_[tokens_[known->second].id] = known->second;
        return;
    }
    const auto index = static_cast<uint32_t>(tokens_.size());
    by_content_.emplace(token.content, index);
    by_id_[token.id] = index;
    tokens_.push_back(std::move(token));
}

const AddedToken* AddedTokens::by_id(int32_t id) const {
    const auto it = by_id_.find(id);
    return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

const AddedToken* AddedTokens::by_content(std::string_view content) const {
    const auto it = by_content_.find(std::string(content));
    return it == by_content_.end() ? nullptr : &tokens_[it->second];
}

void AddedTokens::split(std::string_view text, bool in_normalized, bool specials,
                        std::vector<Segment>& out) const {
    const StringMatcher& matcher = in_normalized ? normalized_ : raw_;
    size_t done = 0;  // end of the last segment
    for (size_t from = 0; from < text.size();) {
        const auto match = matcher.find(text, from);
        if (!match) break;
        from = match->end;  // a refused match is passed as a whole
        const AddedToken& token = tokens_[match->value];
        if (token.special && !specials) continue;
        if (token.single_word && (word_before(text, match->begin) || word_behind(text, match->end)))
            continue;
        size_t begin = match->begin, end = match->end;
        if (token.lstrip) begin = std::max(skip_space_left(text, begin), done);
        if (token.rstrip) end = skip_space_right(text, end);
        if (done < begin) out.push_back({-1, done, begin});
        // A match inside white space that the token before it has taken leaves nothing.
        if (begin < end) out.push_back({token.id, begin, end});
        done = end;
    }
    if (done < text.size()) out.push_back({-1, done, text.size()});
}

}  // namespace exl3::text
