#include "gpu/kv_group.cuh"
#include "gpu/launch.h"
#include "gpu/sequences.cuh"

namespace exl3::gpu {
namespace {

/// Keys or values: where they come from and go to.
struct Plane {
    const float* from = nullptr;
    int64_t from_stride = 0;  ///< floats from one head to the next
    void* data = nullptr;
    __half* scale = nullptr;  ///< null: f16
    int bits = 16;
};

Plane plane(const ConstView& from, const View& data, const View& scale) {
    return {from.as<float>(), from.row_stride, data.data, scale.as<__half>(),
            kv_bits_of(data, scale, from.shape[2])};
}

// One head of one token, by one warp.
__device__ void store_head(const Plane& p, int64_t from_head, int64_t to_head, int dim, int lane) {
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

__global__ void append_tokens(Plane k, Plane v, SequencesOnGpu seq, int heads, int dim) {
    wait_for_predecessor();
    let_successor_start();
    const int token = blockIdx.x, lane = threadIdx.x % kWarp;
    const int s = seq.of_row(token);
    if (s < 0) return;
    const int64_t slot = seq.slot(s, seq.position(s, token));
    for (int h = threadIdx.x / kWarp; h < 2 * heads; h += blockDim.x / kWarp) {
        const int head = h % heads;
        store_head(h < heads ? k : v, static_cast<int64_t>(token) * heads + head,
                   slot * heads + head, dim, lane);
    }
}

}  // namespace

void kv_append(Stream& s, const KvAppendArgs& a) {
    launch(gpu_stream(s), "kv_append", {dim3(static_cast<unsigned>(a.k.shape[0])), dim3(256)},
           append_tokens, plane(a.k, a.cache.k, a.cache.k_scale),
           plane(a.v, a.cache.v, a.cache.v_scale), SequencesOnGpu(a.seq),
           static_cast<int>(a.k.shape[1]), static_cast<int>(a.k.shape[2]));
}

}  // namespace exl3::gpu
