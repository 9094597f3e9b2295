#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace exl3::text {

/// Hash of a short byte string; quick, not against an adversary.
uint64_t hash_bytes(std::string_view s);

/// A map from strings to numbers >= 0 that grows only: strings lie in one pool, the index is an
/// open-addressed table that costs a look-up two cache misses. Much faster to fill than
/// std::unordered_map, which is what loading a vocabulary of 260,000 tokens needs.
class StringTable {
public:
    struct Text {
        uint32_t offset = 0, length = 0;  ///< in the pool
    };
    void reserve(size_t entries);
    /// Inserts or overwrites; returns where the key lies, which stays valid.
    Text set(std::string_view key, int32_t value);
    int32_t find(std::string_view key) const { return find(key, hash_bytes(key)); }
    int32_t find(std::string_view key, uint64_t hash) const;  ///< -1 if absent
    /// Fetches what find() will look at first.
    void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]); }
    std::string_view text(Text t) const { return {pool_.data() + t.offset, t.length}; }
    size_t size() const { return size_; }
    void clear();

private:
    struct Slot {
        uint32_t hash = 0;
        Text key;
        int32_t value = kFree;
    };
    static constexpr int32_t kFree = -1;
    void rehash(size_t slots);
    size_t slot_of(std::string_view key, uint64_t hash) const;

    std::string pool_;
    std::vector<Slot> slots_ = std::vector<Slot>(16);  // a power of two, at most half full
    size_t size_ = 0;
};

/// Tokens of a model: text to id and back. Ids may leave gaps.
class Vocab {
public:
    /// Larger ids are refused: they would size tables that no real tokenizer needs.
    static constexpr int64_t kMaxId = (1 << 22) - 1;
    void reserve(size_t n) { table_.reserve(n); }
    /// A repeated token moves to the new id, as the last of repeated JSON keys wins.
    void set(std::string_view token, int32_t id);
    int32_t find(std::string_view token) const { return table_.find(token); }
    int32_t find(std::string_view token, uint64_t hash) const { return table_.find(token, hash); }
    bool has(int32_t id) const {
        return id >= 0 && static_cast<size_t>(id) < texts_.size() &&
               texts_[static_cast<size_t>(id)].offset != kNone;
    }
    std::string_view text(int32_t id) const {  ///< of an id that it has
        return table_.text(texts_[static_cast<size_t>(id)]);
    }
    size_t size() const { return table_.size(); }
    int32_t id_bound() const { return static_cast<int32_t>(texts_.size()); }
    const StringTable& table() const { return table_; }

private:
    static constexpr uint32_t kNone = 0xFFFFFFFF;
    StringTable table_;
    std::vector<StringTable::Text> texts_;  // of each id; offset kNone: there is no such id
};

}  // namespace exl3::text
