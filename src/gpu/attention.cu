// Chooses the kernels of attention, and has the plain one.
#include "gpu/attention.cuh"

namespace exl3::gpu {
namespace {

/// H32 of every group of 32 channels, in place or from elsewhere, a warp for each.
__global__ void rotate_groups(const float* from, float* to, int64_t groups) {
    wait_for_predecessor();
    let_successor_start();
    const int lane = threadIdx.x % kWarp;
    const int64_t group =
        static_cast<int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
    if (group >= groups) return;
    to[group * kKvGroup + lane] = kv_rotate_lane(from[group * kKvGroup + lane], lane);
}

void rotate(GpuStream& s, const float* from, float* to, int64_t values) {
    const int64_t groups = values / kKvGroup;
    launch(s, "attention", {dim3(blocks_for(groups, 8)), dim3(8 * kWarp)}, rotate_groups, from, to,
           groups);
}

__device__ float cached(const CachePlane& p, int64_t row, int dim, int channel) {
    if (!p.scale) return __half2float(static_cast<const __half*>(p.data)[row * dim + channel]);
    const int64_t group = (row * dim + channel) / kKvGroup;
    return __half2float(kv_decode_lane(static_cast<const uint32_t*>(p.data) + group * p.bits,
                                       p.scale[group], p.bits, channel % kKvGroup));
}

/// Channels that a lane may hold.
constexpr int kMostDim = 1024;

__global__ void plain(AttentionKernelArgs a, int64_t queries) {
    wait_for_predecessor();
    let_successor_start();
    const int lane = threadIdx.x % kWarp;
    const int64_t query =
        static_cast<int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
    if (query >= queries) return;
    const int row = static_cast<int>(query / a.heads), head = static_cast<int>(query % a.heads);
    const int s = a.seq.of_row(row);
    if (s < 0) return;
    const int position = a.seq.position(s, row), kv_head = head / a.group();
    const float* q = a.q + query * a.q_stride;
    float sum[kMostDim / kWarp] = {}, top = a.sink(head), total = a.sinks ? 1 : 0;
    for (int t = a.first_visible(position); t <= position; ++t) {
        const int64_t at = a.seq.slot(s, t) * a.kv_heads + kv_head;
        float dot = 0;
        for (int c = lane; c < a.dim; c += kWarp) dot += q[c] * cached(a.k, at, a.dim, c);
        const float logit = a.logit(warp_sum(dot)), to = fmaxf(top, logit);
        const float keep = weight_of(top, to), p = weight_of(logit, to);
        top = to;
        total = total * keep + p;
#pragma unroll
        for (int i = 0; i < kMostDim / kWarp; ++i) {
            const int c = i * kWarp + lane;
            if (c < a.dim) sum[i] = sum[i] * keep + p * cached(a.v, at, a.dim, c);
        }
    }
#pragma unroll
    for (int i = 0; i < kMostDim / kWarp; ++i) {
        const int c = i * kWarp + lane;
        if (c < a.dim) a.y[query * a.y_stride + c] = sum[i] / total;
    }
}

}  // namespace

void attention_plain(GpuStream& s, const AttentionKernelArgs& a, int64_t tokens) {
    if (a.dim > kMostDim)
        throw Error(Errc::unsupported, {},
                    "attention: heads of more than 1024 channels have no GPU kernel; use --device "
                    "cpu");
    const int64_t queries = tokens * a.heads;
    launch(s, "attention", {dim3(blocks_for(queries, 4)), dim3(4 * kWarp)}, plain, a, queries);
}

void attention(Stream& stream, const AttentionArgs& args) {
    GpuStream& s = gpu_stream(stream);
    const int64_t tokens = args.q.shape[0];
    if (tokens == 0) return;
    const auto scope = s.workspace().scope();
    AttentionKernelArgs a(args);
    if (a.k.scale) {  // queries meet rotated keys
        EXL3_CHECK(a.q_stride == a.dim);
        float* rotated = s.workspace().take(DType::f32, args.q.shape).as<float>();
        rotate(s, a.q, rotated, args.q.shape.numel());
        a.q = rotated;
    }
    const int sequences = a.seq.count;
    const bool quantized = a.k.scale || a.v.scale;
    if (a.dim % 8 != 0 || a.dim > 256) {
        attention_plain(s, a, tokens);
    } else {
        // How the tokens share out is known on the GPU alone: each kernel leaves the sequences of
        // the other alone. One row each is what decoding looks like, whatever the batch.
        attention_decode(s, a, sequences, tokens, static_cast<int>(args.seq.pages.shape[1]),
                         quantized);
        if (tokens > kDecodeRows) attention_prefill(s, a, sequences, tokens, quantized);
    }
    if (a.v.scale) {
        EXL3_CHECK(a.y_stride == a.dim);
        rotate(s, a.y, a.y, args.y.shape.numel());
    }
}

}  // namespace exl3::gpu
