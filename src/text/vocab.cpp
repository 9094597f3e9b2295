#include "text/vocab.h"

#include <bit>
#include <cstring>

namespace exl3::text {

uint64_t hash_bytes(std::string_view s) {
    constexpr uint64_t kMix = 0x9E3779B97F4A7C15u;
    uint64_t h = s.size() * kMix;
    const char* p = s.data();
    size_t n = s.size();
    const auto mix = [&](uint64_t word) {
        h = (h ^ word) * kMix;
        h ^= h >> 29;
    };
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        std::memcpy(&word, p, 8);
        mix(word);
    }
    if (n > 0) {
        uint64_t word = 0;
        std::memcpy(&word, p, n);
        mix(word);
    }
    h *= 0xBF58476D1CE4E5B9u;
    return h ^ h >> 32;
}

void StringTable::reserve(size_t entries) {
    entries_.reserve(entries);
    pool_.reserve(entries * 8);
    const size_t slots = std::bit_ceil(entries * 2 + 16);
    if (slots > slots_.size()) rehash(slots);
}

void StringTable::clear() {
    pool_.clear();
    entries_.clear();
    for (Slot& s : slots_) s.entry = kEmpty;
}

void StringTable::rehash(size_t slots) {
    slots_.assign(slots, {0, kEmpty});
    const size_t mask = slots - 1;
    for (uint32_t i = 0; i < entries_.size(); ++i) {
        size_t at = hash_bytes(key(i)) & mask;
        while (slots_[at].entry != kEmpty) at = (at + 1) & mask;
        slots_[at] = {entries_[i].hash, i};
    }
}

size_t StringTable::slot_of(std::string_view key, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    const auto high = static_cast<uint32_t>(hash >> 32);
    size_t at = hash & mask;
    while (slots_[at].entry != kEmpty &&
           (slots_[at].hash != high || this->key(slots_[at].entry) != key))
        at = (at + 1) & mask;
    return at;
}

int32_t StringTable::find(std::string_view key, uint64_t hash) const {
    if (slots_.empty()) return -1;
    const uint32_t entry = slots_[slot_of(key, hash)].entry;
    return entry == kEmpty ? -1 : entries_[entry].value;
}

uint32_t StringTable::set(std::string_view key, int32_t value) {
    if ((entries_.size() + 1) * 2 > slots_.size()) rehash(slots_.empty() ? 16 : slots_.size() * 2);
    const uint64_t hash = hash_bytes(key);
    const size_t at = slot_of(key, hash);
    if (slots_[at].entry != kEmpty) {
        entries_[slots_[at].entry].value = value;
        return slots_[at].entry;
    }
    const auto entry = static_cast<uint32_t>(entries_.size());
    const auto high = static_cast<uint32_t>(hash >> 32);
    entries_.push_back(
        {static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(key.size()), value, high});
    pool_.append(key);
    slots_[at] = {high, entry};
    return entry;
}

void Vocab::set(std::string_view token, int32_t id) {
    const int32_t before = table_.find(token);
    if (before >= 0 && before != id) entry_of_id_[static_cast<size_t>(before)] = kNone;
    const uint32_t entry = table_.set(token, id);
    if (static_cast<size_t>(id) >= entry_of_id_.size())
        entry_of_id_.resize(static_cast<size_t>(id) + 1, kNone);
    entry_of_id_[static_cast<size_t>(id)] = entry;
}

}  // namespace exl3::text
