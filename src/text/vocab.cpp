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
    pool_.reserve(entries * 8);
    const size_t slots = std::bit_ceil(entries * 2 + 16);
    if (slots > slots_.size()) rehash(slots);
}

void StringTable::clear() {
    pool_.clear();
    size_ = 0;
    for (Slot& s : slots_) s.value = kFree;
}

void StringTable::rehash(size_t slots) {
    std::vector<Slot> before(slots);
    before.swap(slots_);
    const size_t mask = slots - 1;
    for (const Slot& s : before) {
        if (s.value == kFree) continue;
        size_t at = s.hash & mask;
        while (slots_[at].value != kFree) at = (at + 1) & mask;
        slots_[at] = s;
    }
}

size_t StringTable::slot_of(std::string_view key, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    const auto low = static_cast<uint32_t>(hash);
    size_t at = low & mask;
    while (slots_[at].value != kFree && (slots_[at].hash != low || text(slots_[at].key) != key))
        at = (at + 1) & mask;
    return at;
}

int32_t StringTable::find(std::string_view key, uint64_t hash) const {
    return slots_[slot_of(key, hash)].value;  // kFree is -1
}

StringTable::Text StringTable::set(std::string_view key, int32_t value) {
    if ((size_ + 1) * 2 > slots_.size()) rehash(slots_.size() * 2);
    const uint64_t hash = hash_bytes(key);
    Slot& slot = slots_[slot_of(key, hash)];
    if (slot.value == kFree) {
        slot.hash = static_cast<uint32_t>(hash);
        slot.key = {static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(key.size())};
        pool_.append(key);
        ++size_;
    }
    slot.value = value;
    return slot.key;
}

void Vocab::set(std::string_view token, int32_t id) {
    const int32_t before = table_.find(token);
    if (before >= 0 && before != id) texts_[static_cast<size_t>(before)].offset = kNone;
    if (static_cast<size_t>(id) >= texts_.size())
        texts_.resize(static_cast<size_t>(id) + 1, {kNone, 0});
    texts_[static_cast<size_t>(id)] = table_.set(token, id);
}

}  // namespace exl3::text
