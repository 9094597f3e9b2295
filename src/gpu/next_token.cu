#include "gpu/launch.h"
#include "ops/sample.h"

namespace exl3::gpu {
namespace {

constexpr int kThreads = 256, kBlocksPerRow = 32;

/// Orders floats as integers, NaN below all; the lower index is the larger key of equal values.
__device__ uint64_t key_of(float x, uint32_t index) {
    const uint32_t bits = __float_as_uint(x == 0 ? 0.0f : x);
    const uint32_t order = x != x ? 0u : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return static_cast<uint64_t>(order) << 32 | ~index;
}

__device__ uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/// State of a row between its blocks; zero between launches.
struct RowState {
    unsigned long long best;
    unsigned arrived, unused;
};

__global__ void __launch_bounds__(kThreads)
    pick(const float* logits, int64_t stride, int64_t vocab, int32_t* tokens, int32_t* positions,
         int32_t* kv_len, int32_t* log, int64_t log_stride, int log_rows, RowState* states) {
    __shared__ uint64_t room[kThreads / kWarp];
    wait_for_predecessor();
    let_successor_start();
    const int row = static_cast<int>(blockIdx.y);
    const float* x = logits + row * stride;
    uint64_t best = 0;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < vocab;
         i += static_cast<int64_t>(gridDim.x) * kThreads)
        best = larger(best, key_of(x[i], static_cast<uint32_t>(i)));
    for (int m = kWarp / 2; m > 0; m /= 2)
        best = larger(best, shfl_xor(static_cast<unsigned long long>(best), m));
    if (threadIdx.x % kWarp == 0) room[threadIdx.x / kWarp] = best;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (const uint64_t other : room) best = larger(best, other);
    RowState& state = states[row];
    atomicMax(&state.best, static_cast<unsigned long long>(best));
    __threadfence();
    if (atomicAdd(&state.arrived, 1u) != gridDim.x - 1) return;
    __threadfence();
    const auto token = static_cast<int32_t>(~static_cast<uint32_t>(atomicAdd(&state.best, 0ull)));
    state.best = 0;
    state.arrived = 0;
    log[positions[row] % log_rows * log_stride + row] = token;
    tokens[row] = token;
    positions[row] += 1;
    kv_len[row] += 1;
}

}  // namespace

void next_token(Stream& stream, const NextTokenArgs& a) {
    GpuStream& s = gpu_stream(stream);
    const auto rows = static_cast<unsigned>(a.logits.shape[0]);
    auto* states = reinterpret_cast<RowState*>(s.zeros(rows * sizeof(RowState) / 4));
    launch(s, "next_token", {dim3(kBlocksPerRow, rows), dim3(kThreads)}, pick, a.logits.as<float>(),
           a.logits.row_stride, a.logits.shape[1], a.tokens.as<int32_t>(),
           a.positions.as<int32_t>(), a.kv_len.as<int32_t>(), a.log.as<int32_t>(), a.log.row_stride,
           static_cast<int>(a.log.shape[0]), states);
}

}  // namespace exl3::gpu
