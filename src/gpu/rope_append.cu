#include "ops/rope_append.h"

#include "gpu/kv_store.cuh"
#include "gpu/launch.h"
#include "gpu/rope.cuh"

namespace exl3::gpu {
namespace {

constexpr int kWarps = 4;

struct HeadScale {
    Floats weight;
    float eps, bias;
};
HeadScale head_scale(const HeadNorm& n) {
    return {floats(n.weight), n.eps, n.weight_bias};
}

struct RopeAppendKernelArgs {
    float *q, *k;
    HeadScale q_norm, k_norm;
    const int32_t* positions;
    RopeNumbers rope;
    SequencesOnGpu seq;
    StoredPlane keys, values;
    int heads, kv_heads, dim;
};

// Normalises and rotates one head in place, by one warp. A lane reads and writes channels of its
// own.
__device__ void turn_head(float* x, int dim, const HeadScale& norm, const RopeNumbers& rope,
                          int position, float scale, int lane) {
    float factor = scale;
    if (norm.eps > 0) {
        float squares = 0;
        for (int i = lane; i < dim; i += kWarp) squares += x[i] * x[i];
        factor *= 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(dim) + norm.eps);
    }
    const auto value = [&](int i) {
        return x[i] * factor * (norm.weight.data ? norm.weight[i] + norm.bias : 1.0f);
    };
    sync_warp();  // the sum above read channels of other lanes
    for (int pair = lane; pair < rope.half; pair += kWarp) {
        const float2 t = rotation(rope, position, pair);
        const int2 at = channels(rope, pair);
        const float u = value(at.x), v = value(at.y);
        x[at.x] = u * t.x - v * t.y;
        x[at.y] = v * t.x + u * t.y;
    }
    for (int i = 2 * rope.half + lane; i < dim; i += kWarp) x[i] = value(i);
}

// A block takes some of a token's heads: queries, keys, values, in this order.
__global__ void __launch_bounds__(kWarps* kWarp) turn_and_store(RopeAppendKernelArgs a) {
    wait_for_predecessor();
    let_successor_start();
    const int token = static_cast<int>(blockIdx.x), lane = threadIdx.x % kWarp;
    const int job = static_cast<int>(blockIdx.y) * kWarps + threadIdx.x / kWarp;
    if (job >= a.heads + 2 * a.kv_heads) return;
    const int position = a.rope.half > 0 ? a.positions[token] : 0;
    if (job < a.heads) {
        float* x = a.q + (static_cast<int64_t>(token) * a.heads + job) * a.dim;
        turn_head(x, a.dim, a.q_norm, a.rope, position, query_scale(a.rope, position), lane);
        return;
    }
    const bool key = job < a.heads + a.kv_heads;
    const int head = job - a.heads - (key ? 0 : a.kv_heads);
    const int64_t from = static_cast<int64_t>(token) * a.kv_heads + head;
    if (key) {
        turn_head(a.k + from * a.dim, a.dim, a.k_norm, a.rope, position, 1, lane);
        sync_warp();
    }
    const int s = a.seq.of_row(token);
    if (s < 0) return;
    const int64_t slot = a.seq.slot(s, a.seq.position(s, token));
    store_head(key ? a.keys : a.values, from, slot * a.kv_heads + head, a.dim, lane);
}

}  // namespace

void rope_append(Stream& stream, const RopeAppendArgs& a) {
    GpuStream& s = gpu_stream(stream);
    const RopeAppendKernelArgs args{
        .q = a.q.as<float>(),
        .k = a.k.as<float>(),
        .q_norm = head_scale(a.q_norm),
        .k_norm = head_scale(a.k_norm),
        .positions = a.positions.as<int32_t>(),
        .rope = {.inv_freq = a.inv_freq.as<float>(),
                 .half = a.inv_freq ? static_cast<int>(a.inv_freq.shape[0]) : 0,
                 .style = a.style,
                 .attention_factor = a.attention_factor,
                 .query_scale_beta = a.query_scale_beta,
                 .query_scale_length = a.query_scale_length},
        .seq = SequencesOnGpu(a.seq),
        .keys = stored_plane(a.k, a.cache.k, a.cache.k_scale),
        .values = stored_plane(a.v, a.cache.v, a.cache.v_scale),
        .heads = static_cast<int>(a.q.shape[1]),
        .kv_heads = static_cast<int>(a.k.shape[1]),
        .dim = static_cast<int>(a.q.shape[2])};
    launch(s, "rope_append",
           {dim3(static_cast<unsigned>(a.q.shape[0]),
                 blocks_for(args.heads + 2 * args.kv_heads, kWarps)),
            dim3(kWarps * kWarp)},
           turn_and_store, args);
}

}  // namespace exl3::gpu
