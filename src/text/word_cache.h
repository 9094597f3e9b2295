#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "text/vocab.h"

namespace exl3::text {

/// Remembers the ids of words already encoded. Bounded: a full shard starts again from empty.
/// Thread-safe; a shard's mutex is held for a look-up only.
class WordCache {
public:
    static constexpr size_t kMaxWordBytes = 128;
    /// Appends the ids of `word` if it is known.
    bool find(std::string_view word, uint64_t hash, std::vector<int32_t>& ids);
    void store(std::string_view word, uint64_t hash, const int32_t* ids, size_t count);

private:
    static constexpr size_t kShards = 32;
    static constexpr size_t kWordsPerShard = 4096;
    struct Range {
        uint32_t begin, count;
    };
    struct Shard {
        std::mutex mutex;
        StringTable words;  // word to index of ranges
        std::vector<Range> ranges;
        std::vector<int32_t> ids;
    };
    Shard& shard(uint64_t hash) { return shards_[hash >> 40 & (kShards - 1)]; }
    std::array<Shard, kShards> shards_;
};

}  // namespace exl3::text
