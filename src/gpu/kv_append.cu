#include "gpu/kv_store.cuh"
#include "gpu/launch.h"

namespace exl3::gpu {
namespace {

__global__ void append_tokens(StoredPlane k, StoredPlane v, SequencesOnGpu seq, int heads,
                              int dim) {
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
           append_tokens, stored_plane(a.k, a.cache.k, a.cache.k_scale),
           stored_plane(a.v, a.cache.v, a.cache.v_scale), SequencesOnGpu(a.seq),
           static_cast<int>(a.k.shape[1]), static_cast<int>(a.k.shape[2]));
}

}  // namespace exl3::gpu
