#pragma once
#include <cstdint>

#include "ops/attention.h"

namespace exl3 {

/// Host-side reading of SequencesView, for the backends whose memory is the host's.
struct SequencesOnHost {
    const SequencesView& v;
    int count() const { return static_cast<int>(v.kv_len.shape[0]); }
    int begin(int s) const { return v.q_start.as<int32_t>()[s]; }
    int end(int s) const { return v.q_start.as<int32_t>()[s + 1]; }
    int cached(int s) const { return v.kv_len.as<int32_t>()[s]; }
    /// Position of batch row r of sequence s.
    int position(int s, int r) const { return cached(s) - end(s) + r; }
    /// Row of the cache, counted over all pages, of position t of sequence s.
    int64_t slot(int s, int t) const {
        const int64_t page = v.pages.row<int32_t>(s)[t / kPageTokens];
        return page * kPageTokens + t % kPageTokens;
    }
};

}  // namespace exl3
