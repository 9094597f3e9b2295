#include "gpu/rope.cuh"

#include "gpu/launch.h"

namespace exl3::gpu {
namespace {

// A block per token; a thread keeps a pair of channels and walks over the heads.
__global__ void rotate_heads(float* x, const int32_t* positions, RopeNumbers r, int heads,
                             int64_t dim) {
    wait_for_predecessor();
    let_successor_start();
    const int position = positions[blockIdx.x];
    float* token = x + blockIdx.x * heads * dim;
    const float scale = query_scale(r, position);
    for (int pair = threadIdx.x; pair < r.half; pair += blockDim.x) {
        const float2 t = rotation(r, position, pair);
        const int2 at = channels(r, pair);
        for (int h = threadIdx.y; h < heads; h += blockDim.y) {
            float* head = token + h * dim;
            const float u = head[at.x], v = head[at.y];
            head[at.x] = (u * t.x - v * t.y) * scale;
            head[at.y] = (v * t.x + u * t.y) * scale;
        }
    }
    if (r.query_scale_beta == 0) return;
    for (int64_t i = 2 * r.half + threadIdx.x; i < dim; i += blockDim.x)
        for (int h = threadIdx.y; h < heads; h += blockDim.y) token[h * dim + i] *= scale;
}

}  // namespace

void rope(Stream& s, const RopeArgs& a) {
    const RopeNumbers r{.inv_freq = a.inv_freq.as<float>(),
                        .half = static_cast<int>(a.inv_freq.shape[0]),
                        .style = a.style,
                        .attention_factor = a.attention_factor,
                        .query_scale_beta = a.query_scale_beta,
                        .query_scale_length = a.query_scale_length};
    launch(gpu_stream(s), "rope", {dim3(static_cast<unsigned>(a.x.shape[0])), dim3(kWarp, 8)},
           rotate_heads, a.x.as<float>(), a.positions.as<int32_t>(), r,
           static_cast<int>(a.x.shape[1]), a.x.shape[2]);
}

}  // namespace exl3::gpu
