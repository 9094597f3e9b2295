#pragma once
// Small device functions that several kernels share.
#include "core/tensor.h"
#include "gpu/vendor.h"

namespace exl3::gpu {

/// A pointer to f32, f16 or bf16 values.
struct Floats {
    const void* data = nullptr;
    DType dtype = DType::f32;
    __device__ float operator[](int64_t i) const {
        if (dtype == DType::f32) return static_cast<const float*>(data)[i];
        if (dtype == DType::f16) return __half2float(static_cast<const __half*>(data)[i]);
        // bf16 is the upper half of an f32.
        return __uint_as_float(static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16);
    }
};
inline Floats floats(const ConstView& v) {
    return {v.data, v.dtype};
}

/// Sums over the 32 lanes, the same bits in each.
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int m = kWarp / 2; m > 0; m /= 2) v += shfl_xor(v, m);
    return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
    for (int m = kWarp / 2; m > 0; m /= 2) v = fmaxf(v, shfl_xor(v, m));
    return v;
}

/// Sums over a block of up to 1024 threads, a multiple of 32. `room`: 32 floats of shared memory
/// that nobody else uses until the next barrier after the call.
__device__ __forceinline__ float block_sum(float v, float* room) {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    v = warp_sum(v);
    __syncthreads();
    if (lane == 0) room[warp] = v;
    __syncthreads();
    return warp_sum(lane < static_cast<int>(blockDim.x) / kWarp ? room[lane] : 0.0f);
}

/// The f16 nearest to x, clamped to the finite range; NaN stays.
__device__ __forceinline__ __half to_half_clamped(float x) {
    return __float2half_rn(x > 65504.0f ? 65504.0f : x < -65504.0f ? -65504.0f : x);
}

}  // namespace exl3::gpu
