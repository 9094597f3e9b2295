#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace exl3::text {

/// Hash of a short byte string; quick, not against an adversary.
uint64_t hash_bytes(std::string_view s);

/// A map from strings to numbers >= 0 that grows only: strings lie in one pool, the index is an
/// open-addressed table. A few times faster to fill than std::unordered_map, which is what loading
/// a vocabulary of 260,000 tokens needs.
class StringTable {
public:
    void reserve(size_t entries);
    /// Inserts or overwrites; returns the entry's number (in order of first insertion).
    uint32_t set(std::string_view key, int32_t value);
    int32_t find(std::string_view key) const { return find(key, hash_bytes(key)); }
    int32_t find(std::string_view key, uint64_t hash) const;  ///< -1 if absent
    std::string_view key(uint32_t entry) const {
        return {pool_.data() + entries_[entry].offset, entries_[entry].length};
    }
    size_t size() const { return entries_.size(); }
    size_t pool_bytes() const { return pool_.size(); }
    void clear();

private:
    struct Entry {
        uint32_t offset, length;
        int32_t value;
        uint32_t hash;  // high half, also kept in the slot
    };
    struct Slot {
        uint32_t hash;
        uint32_t entry;  // kEmpty, or a number of entries_
    };
    static constexpr uint32_t kEmpty = 0xFFFFFFFF;
    void rehash(size_t slots);
    size_t slot_of(std::string_view key, uint64_t hash) const;

    std::string pool_;
    std::vector<Entry> entries_;
    std::vector<Slot> slots_;  // a power of two, at most half full
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
        return id >= 0 && static_cast<size_t>(id) < entry_of_id_.size() &&
               entry_of_id_[static_cast<size_t>(id)] != kNone;
    }
    std::string_view text(int32_t id) const {  ///< of an id that it has
        return table_.key(entry_of_id_[static_cast<size_t>(id)]);
    }
    size_t size() const { return table_.size(); }
    int32_t id_bound() const { return static_cast<int32_t>(entry_of_id_.size()); }

private:
    static constexpr uint32_t kNone = 0xFFFFFFFF;
    StringTable table_;
    std::vector<uint32_t> entry_of_id_;
};

}  // namespace exl3::text
