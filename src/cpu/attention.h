#pragma once
#include "ops/attention.h"
#include "ops/sequences.h"

namespace exl3::cpu {

/// Keys that one decode task reads; longer contexts are cut and merged afterwards.
inline constexpr int kDecodeKeys = 512;
/// Keys between two updates of the running maximum there. A page is whole blocks, so a block that
/// holds a visible key lies in pages the sequence still has.
inline constexpr int kBlockKeys = 64;
static_assert(kPageTokens % kBlockKeys == 0 && kDecodeKeys % kBlockKeys == 0);
/// kDecodeKeys for prefill tasks of sequences with up to kCutLanes lanes.
inline constexpr int kPrefillKeys = 2048;
inline constexpr int kCutLanes = 128;
/// Up to here keys and values are used as they lie in the cache; more lanes pay for converting and
/// rearranging them (bench_ops, attention with 1 to 64 rows).
inline constexpr int kDecodeLaneLimit = 64;
/// The running maximum before the first key. Finite, so what is masked with -inf stays below it.
inline constexpr float kNoMaximum = -1e30f;

/// The queries of one key/value head against a run of keys. A lane is one query vector: lane
/// l of a sequence is row l / group, head kv_head * group + l % group.
struct AttentionTask {
    int sequence = 0, kv_head = 0;
    int lane_begin = 0, lane_end = 0;
    int key_begin = 0, key_end = 0;
    int chunk = 0, chunks = 1;  ///< which run of keys this is, of how many
    /// Records of the sequence, (rows, heads, chunks, dim + 2); null where chunks is 1. A record is
    /// the sum of p * v, then the largest logit, then the sum of p.
    float* records = nullptr;
};

/// Merges `count` adjacent records and the sink, if any, into y (dim).
using AttentionFinish = void (*)(const float* records, int count, int64_t dim, const float* sink,
                                 float* y);

/// What the tiers of attention_decode.cpp and attention_prefill.cpp offer.
struct AttentionKernel {
    void (*run)(const AttentionArgs& a, const AttentionTask& t, AttentionFinish finish,
                float* scratch) = nullptr;
    int64_t (*scratch)(int64_t dim) = nullptr;  ///< floats that run needs
    int lanes = 0;                              ///< most lanes in a task
};
AttentionKernel decode_kernel(
    const Stream& s);  ///< all lanes of a sequence, at most kDecodeLaneLimit
AttentionKernel prefill_kernel(const Stream& s);  ///< any number of lanes

/// Where the record of a lane lies, `own` where the task sees all keys.
inline float* record_of(const AttentionArgs& a, const AttentionTask& t, int lane, float* own) {
    if (!t.records) return own;
    const int64_t heads = a.q.shape[1], group = heads / a.cache.kv_heads();
    const int64_t query = lane / group * heads + t.kv_head * group + lane % group;
    return t.records + (query * t.chunks + t.chunk) * (a.q.shape[2] + 2);
}

/// Row of q and y, counted over heads, of a lane.
inline int64_t query_row(const AttentionArgs& a, const AttentionTask& t, int lane) {
    const int64_t heads = a.q.shape[1], group = heads / a.cache.kv_heads();
    const int64_t row = a.seq.q_start.as<int32_t>()[t.sequence] + lane / group;
    return row * heads + t.kv_head * group + lane % group;
}

/// Row of the cache, counted over its heads, of a key or value. The next token of the same page is
/// kv_heads rows further.
inline int64_t cache_row(const AttentionArgs& a, const AttentionTask& t, int key) {
    return SequencesOnHost{a.seq}.slot(t.sequence, key) * a.cache.kv_heads() + t.kv_head;
}

/// First value of a row of an f16 plane.
inline const f16* cached(const View& plane, int64_t row) {
    return plane.as<f16>() + row * plane.shape[3];
}

}  // namespace exl3::cpu
