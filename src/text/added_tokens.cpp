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

uint32_t StringMatcher::child_of(uint32_t node, uint8_t byte) const {
    uint32_t child = nodes_[node].child;
    while (child != kNone && nodes_[child].byte != byte) child = nodes_[child].sibling;
    return child;
}

void StringMatcher::add(std::string_view text, uint32_t value) {
    uint32_t node = kNone;
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        uint32_t next = node == kNone ? roots_[byte] : child_of(node, byte);
        if (next == kNone) {
            next = static_cast<uint32_t>(nodes_.size());
            nodes_.push_back({.byte = byte});
            if (node == kNone) {
                roots_[byte] = next;
            } else {
                nodes_[next].sibling = nodes_[node].child;
                nodes_[node].child = next;
            }
        }
        node = next;
    }
    if (nodes_[node].value == kNone) nodes_[node].value = value;
}

std::optional<StringMatcher::Match> StringMatcher::find(std::string_view text, size_t from) const {
    if (empty()) return std::nullopt;
    for (size_t begin = from; begin < text.size(); ++begin) {
        uint32_t node = roots_[static_cast<uint8_t>(text[begin])];
        if (node == kNone) continue;
        Match best{begin, begin, kNone};
        for (size_t i = begin + 1;; ++i) {
            if (nodes_[node].value != kNone) best = {begin, i, nodes_[node].value};
            if (i == text.size()) break;
            node = child_of(node, static_cast<uint8_t>(text[i]));
            if (node == kNone) break;
        }
        if (best.value != kNone) return best;
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
        out.push_back({token.id, begin, end});
        done = end;
    }
    if (done < text.size()) out.push_back({-1, done, text.size()});
}

}  // namespace exl3::text
