#pragma once
// Writing heads into the cache.
#include "gpu/kv_group.cuh"
#include "gpu/sequences.cuh"

namespace exl3::gpu {

/// Keys or values: where they come from and go to.
struct StoredPlane {
    const float* from = nullptr;
    int64_t from_stride = 0;  ///< floats from one head to the next
    void* data = nullptr;
    __half* scale = nullptr;  ///< null: f16
    int bits = 16;
};

inline StoredPlane stored_plane(const ConstView& from, const View& data, const View& scale) {
    return {from.as<float>(), from.row_stride, data.data, scale.as<__half>(),
            kv_bits_of(data, scale, from.shape[2])};
}

// One head of one token, by one warp.
inline __device__ void store_head(const StoredPlane& p, int64_t from_head, int64_t to_head, int dim,
                           int lane) {
    const float* x = p.from + from_head * p.from_stride;
    if (!p.scale) {
        __half* out = static_cast<__half*>(p.data) + to_head * dim;
        for (int i = lane; i < dim; i += kWarp) out[i] = to_half_clamped(x[i]);
        return;
    }
    const int groups = dim / kKvGroup;
    for (int g = 0; g < groups; ++g) {
        const float v = x[g * kKvGroup + lane];
        const float clamped = v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v;
        const int64_t group = to_head * groups + g;
        kv_encode_lane(clamped, p.bits, static_cast<uint32_t*>(p.data) + group * p.bits,
                       p.scale + group, lane);
    }
}

}  // namespace exl3::gpu
