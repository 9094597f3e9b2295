#pragma once
// What the attention kernels share: arguments, reading of the cache, the rule of visibility.
#include <algorithm>

#include "gpu/kv_group.cuh"
#include "gpu/launch.h"
#include "gpu/sequences.cuh"

namespace exl3::gpu {

/// Keys or values of one layer.
struct CachePlane {
    const void* data = nullptr;
    const __half* scale = nullptr;  ///< null: f16
    int bits = 16;
};

struct AttentionKernelArgs {
    const float* q = nullptr;
    int64_t q_stride = 0;  ///< floats from one head to the next
    float* y = nullptr;
    int64_t y_stride = 0;
    CachePlane k, v;
    SequencesOnGpu seq;
    const float* sinks = nullptr;
    int heads = 0, kv_heads = 0, dim = 0;
    float scale = 1, softcap = 0;
    int window = 0;

    explicit AttentionKernelArgs(const AttentionArgs& a)
        : q(a.q.as<float>()),
          q_stride(a.q.row_stride),
          y(a.y.as<float>()),
          y_stride(a.y.row_stride),
          k{a.cache.k.data, a.cache.k_scale.as<__half>(),
            kv_bits_of(a.cache.k, a.cache.k_scale, a.q.shape[2])},
          v{a.cache.v.data, a.cache.v_scale.as<__half>(),
            kv_bits_of(a.cache.v, a.cache.v_scale, a.q.shape[2])},
          seq(a.seq),
          sinks(a.sinks.as<float>()),
          heads(static_cast<int>(a.q.shape[1])),
          kv_heads(static_cast<int>(a.cache.kv_heads())),
          dim(static_cast<int>(a.q.shape[2])),
          scale(a.scale),
          softcap(a.softcap),
          window(a.window) {}

    __device__ int group() const { return heads / kv_heads; }
    /// First position that the query at `position` sees.
    __device__ int first_visible(int position) const {
        return window > 0 ? max(0, position - window + 1) : 0;
    }
    /// A logit in units of log 2, from q.k.
    __device__ float logit(float dot) const {
        constexpr float kLog2e = 1.4426950408889634f;
        const float s = dot * scale;
        return (softcap > 0 ? softcap * tanhf(s / softcap) : s) * kLog2e;
    }
    /// The sink of a head in units of log 2; -infinity: none.
    __device__ float sink(int head) const {
        return sinks ? sinks[head] * 1.4426950408889634f : -INFINITY;
    }
};

/// Sequences with up to this many rows in the batch are decoded, those with more prefilled.
inline constexpr int kDecodeRows = 16;

/// 2^(a - b), 0 where a is -infinity, whatever b is.
__device__ __forceinline__ float weight_of(float a, float b) {
    return a == -INFINITY ? 0.0f : exp2_fast(a - b);
}

/// Eight neighbouring channels of a head of one token as they are stored: f16 values; or the words
/// that hold their fields (8 bits: x and y; else the planes of 4, 2 and 1 bits) and in w the scale.
/// `row` counts heads of tokens over the whole cache, `channel` is a multiple of 8. Loading and
/// unpacking are apart so that many loads can be under way.
template <bool kQuantized>
__device__ __forceinline__ uint4 load_stored(const CachePlane& p, int64_t row, int dim,
                                             int channel) {
    if (!kQuantized || !p.scale)
        return __ldg(reinterpret_cast<const uint4*>(static_cast<const __half*>(p.data) + row * dim +
                                                    channel));
    const int64_t group = (row * dim + channel) / kKvGroup;
    const int first = channel % kKvGroup;  // of these channels within the group
    const uint32_t* words = static_cast<const uint32_t*>(p.data) + group * p.bits;
    uint4 r{};
    r.w = __half_as_ushort(p.scale[group]);
    if (p.bits == 8) {
        r.x = words[first / 4];
        r.y = words[first / 4 + 1];
        return r;
    }
    if (p.bits & 4) r.x = words[first / 8];
    words += p.bits & 4;
    if (p.bits & 2) r.y = words[first / 16];
    words += p.bits & 2;
    if (p.bits & 1) r.z = words[0];
    return r;
}

/// What load_stored returned as f16 values, still rotated where they are quantized.
template <bool kQuantized>
__device__ __forceinline__ uint4 expand(const CachePlane& p, uint4 stored, int channel) {
    if (!kQuantized || !p.scale) return stored;
    const int first = channel % kKvGroup;
    const float middle = static_cast<float>(1 << (p.bits - 1));
    const float step =
        __half2float(__ushort_as_half(static_cast<unsigned short>(stored.w))) / middle;
    const uint32_t twos = stored.y >> (first % 16 * 2), ones = stored.z >> first;
    const auto value = [&](int i) {
        uint32_t code = 0;
        if (p.bits == 8) {
            code = (i < 4 ? stored.x : stored.y) >> (8 * (i % 4)) & 255;
        } else {
            if (p.bits & 4) code = stored.x >> (4 * i) & 15;
            if (p.bits & 2) code = code << 2 | (twos >> (2 * i) & 3);
            if (p.bits & 1) code = code << 1 | (ones >> i & 1);
        }
        // 2^22 + code, exactly: floats there are half a unit apart.
        return (__uint_as_float(0x4A800000u | code << 1) - (4194304.0f + middle - 0.5f)) * step;
    };
    return {pack_halves(value(0), value(1)), pack_halves(value(2), value(3)),
            pack_halves(value(4), value(5)), pack_halves(value(6), value(7))};
}

template <bool kQuantized>
__device__ __forceinline__ uint4 load_channels(const CachePlane& p, int64_t row, int dim,
                                               int channel) {
    return expand<kQuantized>(p, load_stored<kQuantized>(p, row, dim, channel), channel);
}

/// Launches over the sequences with few rows. @param sequences  of the batch  @param tokens  of it
void attention_decode(GpuStream& s, const AttentionKernelArgs& a, int sequences, int64_t tokens,
                      int max_pages, bool quantized);
/// Launches over the sequences with more rows.
void attention_prefill(GpuStream& s, const AttentionKernelArgs& a, int sequences, int64_t tokens,
                       bool quantized);
/// Every sequence, any size of heads, a warp for each query: for shapes the others do not take.
void attention_plain(GpuStream& s, const AttentionKernelArgs& a, int64_t tokens);

}  // namespace exl3::gpu
