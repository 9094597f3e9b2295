#pragma once
#include "gpu/vendor.h"
#include "ops/rope.h"

namespace exl3::gpu {

struct RopeNumbers {
    const float* inv_freq = nullptr;
    int half = 0;  ///< pairs that rotate
    RopeStyle style = RopeStyle::neox;
    float attention_factor = 1;
    float query_scale_beta = 0, query_scale_length = 1;
};

/// cos and sin of position * inv_freq, times the attention factor. The angle is counted in turns
/// in f64 and reduced there, which is exact enough at any position and needs no f64 functions.
__device__ __forceinline__ float2 rotation(const RopeNumbers& r, int position, int pair) {
    constexpr double kPerTurn = 0.15915494309189535;  // 1 / (2 pi)
    double turns =
        static_cast<double>(position) * (static_cast<double>(r.inv_freq[pair]) * kPerTurn);
    turns -= rint(turns);
    float sine, cosine;
    sincospif(static_cast<float>(2 * turns), &sine, &cosine);
    return {cosine * r.attention_factor, sine * r.attention_factor};
}
/// What every channel of a query is multiplied by.
__device__ __forceinline__ float query_scale(const RopeNumbers& r, int position) {
    if (r.query_scale_beta == 0) return 1;
    return 1 +
           r.query_scale_beta * log1pf(floorf(static_cast<float>(position) / r.query_scale_length));
}
/// Channels of a pair.
__device__ __forceinline__ int2 channels(const RopeNumbers& r, int pair) {
    return r.style == RopeStyle::neox ? make_int2(pair, pair + r.half)
                                      : make_int2(2 * pair, 2 * pair + 1);
}

}  // namespace exl3::gpu
