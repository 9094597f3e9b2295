#pragma once
// Groups of the quantized cache, a warp for each: lane i has channel i. ops/kv_group.h is the
// definition; what is written here equals it bit for bit.
#include "gpu/numbers.cuh"
#include "ops/kv_group.h"

namespace exl3::gpu {

__device__ __forceinline__ float kv_rotate_lane(float x, int lane) {
#pragma unroll
    for (int m = 1; m < kKvGroup; m *= 2) {
        const float other = shfl_xor(x, m);
        x = lane & m ? other - x : x + other;
    }
    return x * kKvRotation;
}

/// Stores one group of clamped, unrotated values.
__device__ __forceinline__ void kv_encode_lane(float x, int bits, uint32_t* words, __half* scale,
                                               int lane) {
    const float y = kv_rotate_lane(x, lane);
    const bool is_number = y == y;
    bool finite = true;
    float top = is_number ? fabsf(y) : 0.0f;
#pragma unroll
    for (int m = 1; m < kKvGroup; m *= 2) top = fmaxf(top, shfl_xor(top, m));
    int bad = is_number ? 0 : 1;
#pragma unroll
    for (int m = 1; m < kKvGroup; m *= 2) bad |= shfl_xor(bad, m);
    finite = bad == 0;
    const float s = top + 1e-10f;
    const float middle = static_cast<float>(1 << (bits - 1)), most = 2 * middle - 1;
    const float q = __fmaf_rn(y * (1.0f / s), middle, middle);
    const uint32_t code = finite ? static_cast<uint32_t>(q < 0 ? 0.0f : q > most ? most : q) : 0;
    int left = bits;
#pragma unroll
    for (int width = 8; width >= 1; width /= 2) {
        if (!(bits & width)) continue;
        left -= width;
        uint32_t word = ((code >> left) & ((1u << width) - 1)) << (lane * width % 32);
        for (int m = 1; m < 32 / width; m *= 2) word |= shfl_xor(word, m);
        if (lane % (32 / width) == 0) words[lane * width / 32] = word;
        words += width;
    }
    if (lane == 0)
        *scale = finite ? __float2half_rn(s > 65504.0f ? 65504.0f : s)
                        : __ushort_as_half(static_cast<unsigned short>(0x7e00));
}

/// Channel `lane` of a group, still rotated.
__device__ __forceinline__ __half kv_decode_lane(const uint32_t* words, __half scale, int bits,
                                                 int lane) {
    uint32_t code = 0;
#pragma unroll
    for (int width = 8; width >= 1; width /= 2) {
        if (!(bits & width)) continue;
        const uint32_t field = words[lane * width / 32] >> (lane * width % 32);
        code = (code << width) | (field & ((1u << width) - 1));
        words += width;
    }
    const float middle = static_cast<float>(1 << (bits - 1));
    const float step = __half2float(scale) / middle;
    return __float2half_rn((static_cast<float>(code) - middle + 0.5f) * step);
}

}  // namespace exl3::gpu
