#include "text/trie.h"

#include <bit>

namespace exl3::text {

Trie::Trie() {
    roots_.fill(kNone);
}

void Trie::reserve(size_t bytes) {
    grow(std::bit_ceil(bytes + 16));
}

void Trie::grow(size_t slots) {
    if (slots <= edges_.size()) return;
    std::vector<Edge> before(slots, Edge{kFree, kNone});
    before.swap(edges_);
    for (const Edge& e : before)
        if (e.key != kFree) insert(e.key, e.to);
}

void Trie::insert(uint64_t key, uint32_t to) {
    const size_t mask = edges_.size() - 1;
    size_t at = mix(key) & mask;
    while (edges_[at].key != kFree) at = (at + 1) & mask;
    edges_[at] = {key, to};
}

uint32_t Trie::next(uint32_t node, char byte) const {
    if (edges_.empty()) return kNone;
    const uint64_t key = uint64_t{node} << 8 | static_cast<uint8_t>(byte);
    const size_t mask = edges_.size() - 1;
    for (size_t at = mix(key) & mask;; at = (at + 1) & mask) {
        if (edges_[at].key == key) return edges_[at].to;
        if (edges_[at].key == kFree) return kNone;
    }
}

uint32_t Trie::add(std::string_view text) {
    uint32_t node = kNone;
    for (const char c : text) {
        uint32_t to = node == kNone ? first(c) : next(node, c);
        if (to == kNone) {
            to = static_cast<uint32_t>(values_.size());
            values_.push_back(kNone);
            if (node == kNone) {
                roots_[static_cast<uint8_t>(c)] = to;
            } else {
                if ((++edge_count_ + 1) * 2 > edges_.size())
                    grow(edges_.empty() ? 16 : edges_.size() * 2);
                insert(uint64_t{node} << 8 | static_cast<uint8_t>(c), to);
            }
        }
        node = to;
    }
    return node;
}

void Trie::set(std::string_view text, uint32_t value) {
    values_[add(text)] = value;
}

bool Trie::contains(std::string_view text) const {
    if (text.empty()) return false;
    uint32_t node = first(text[0]);
    for (size_t i = 1; i < text.size() && node != kNone; ++i) node = next(node, text[i]);
    return node != kNone && values_[node] != kNone;
}

}  // namespace exl3::text
