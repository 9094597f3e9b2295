#pragma once
#include "core/tensor.h"

namespace exl3 {

/// Tokens in one page of the K/V cache.
inline constexpr int kPageTokens = 256;

/// Bits of a cached value: 16 (f16), or 2 to 8 plus an f16 scale for each 32 channels.
struct KvBits {
    int keys = 16, values = 16;
    bool operator==(const KvBits&) const = default;
};
constexpr bool is_kv_bits(int bits) {
    return bits == 16 || (bits >= 2 && bits <= 8);
}

/// The K/V storage of one layer. Token t of a sequence lives in page pages[t / 256] at t % 256.
/// Keys and values are each f16 or, where there is a scale, quantized as ops/kv_group.h says.
struct KvView {
    View k;          ///< (pages, 256, kv_heads, head_dim) f16, or (..., head_dim / 32 * bits) u32
    View v;          ///< the same, with bits of its own
    View k_scale{};  ///< (pages, 256, kv_heads, head_dim / 32) f16 of quantized keys, else empty
    View v_scale{};  ///< the same for values

    int64_t kv_heads() const { return k.shape[2]; }
};
/// Bits of a quantized plane of heads with `dim` channels; 16 for an f16 one.
constexpr int kv_bits_of(const View& data, const View& scale, int64_t dim) {
    return scale.data ? static_cast<int>(data.shape[3] * 32 / dim) : 16;
}

/// Which rows of a batch belong to which sequence, and where their tokens are cached. Row r of
/// sequence s with q_start[s] <= r < q_start[s + 1] has the sequence index (position)
/// kv_len[s] - (q_start[s + 1] - r).
struct SequencesView {
    ConstView q_start;  ///< (sequences + 1) i32, ascending, first 0, last = tokens in the batch
    ConstView kv_len;   ///< (sequences) i32: tokens cached, those of this batch included
    ConstView pages;    ///< (sequences, max_pages) i32: physical page of each logical page
};

/// Writes the keys and values of a batch into the cache.
struct KvAppendArgs {
    ConstView k;  ///< (tokens, kv_heads, head_dim) f32
    ConstView v;  ///< the same
    SequencesView seq;
    KvView cache;  ///< what does not fit f16 is clamped to its range
};
void check(const KvAppendArgs& a);

/// Softmax attention over the cache, causal, softmax state in f32. Quantized keys and values are
/// never put back into the basis of the model: queries are rotated to meet them, results back.
struct AttentionArgs {
    ConstView q;  ///< (tokens, heads, head_dim) f32, heads a multiple of kv_heads
    KvView cache;
    SequencesView seq;
    View y;             ///< (tokens, heads, head_dim) f32; must not alias q
    float scale = 1;    ///< multiplies q.k
    float softcap = 0;  ///< s = cap * tanh(s / cap) when positive
    int window = 0;   ///< key j is visible to query i iff 0 <= i - j < window; 0 = all of the past
    ConstView sinks;  ///< optional (heads) f32: one more logit in the denominator, value zero
};
void check(const AttentionArgs& a);

}  // namespace exl3
