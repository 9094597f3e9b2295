#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace exl3::text {

/// A byte trie from strings to numbers. Edges lie in one hash table keyed by (node, byte), so a
/// step costs one probe however many children a node has.
class Trie {
public:
    static constexpr uint32_t kNone = 0xFFFFFFFF;
    Trie();
    void reserve(size_t bytes);                       ///< of all strings together
    uint32_t add(std::string_view text);              ///< the node of a string that is not empty
    void set(std::string_view text, uint32_t value);  ///< the last value of a string counts
    bool contains(std::string_view text) const;

    /// Nodes of one byte; kNone: no string begins with it.
    uint32_t first(char byte) const { return roots_[static_cast<uint8_t>(byte)]; }
    uint32_t next(uint32_t node, char byte) const;
    uint32_t value(uint32_t node) const { return values_[node]; }  ///< kNone: no string ends here
    bool empty() const { return values_.empty(); }

private:
    struct Edge {
        uint64_t key;  // node << 8 | byte; kFree
        uint32_t to;
    };
    static constexpr uint64_t kFree = ~uint64_t{0};
    static uint64_t mix(uint64_t key) {
        key *= 0x9E3779B97F4A7C15u;
        return key ^ key >> 32;
    }
    void grow(size_t slots);
    void insert(uint64_t key, uint32_t to);

    std::array<uint32_t, 256> roots_;
    std::vector<uint32_t> values_;  // of each node
    std::vector<Edge> edges_;       // a power of two, at most half full
    size_t edge_count_ = 0;
};

}  // namespace exl3::text
