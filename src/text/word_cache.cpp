#include "text/word_cache.h"

namespace exl3::text {

bool WordCache::find(std::string_view word, uint64_t hash, std::vector<int32_t>& ids) {
    Shard& s = shard(hash);
    const std::lock_guard lock(s.mutex);
    const int32_t at = s.words.find(word, hash);
    if (at < 0) return false;
    const Range r = s.ranges[static_cast<size_t>(at)];
    ids.insert(ids.end(), s.ids.begin() + r.begin, s.ids.begin() + r.begin + r.count);
    return true;
}

void WordCache::store(std::string_view word, uint64_t hash, const int32_t* ids, size_t count) {
    Shard& s = shard(hash);
    const std::lock_guard lock(s.mutex);
    if (s.words.find(word, hash) >= 0) return;
    if (s.ranges.size() >= kWordsPerShard) {
        s.words.clear();
        s.ranges.clear();
        s.ids.clear();
    }
    s.words.set(word, static_cast<int32_t>(s.ranges.size()));
    s.ranges.push_back({static_cast<uint32_t>(s.ids.size()), static_cast<uint32_t>(count)});
    s.ids.insert(s.ids.end(), ids, ids + count);
}

}  // namespace exl3::text
