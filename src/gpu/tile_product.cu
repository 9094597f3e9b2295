#include "gpu/tile_product.cuh"

#include <algorithm>

namespace exl3::gpu {
namespace {

constexpr int kThreads = 256, kDepth = 16;

/// Result entries of a block and of a thread: 16 x 16 threads of kSide x kSide each.
template <int kSide>
struct Sizes {
    static constexpr int kTile = 16 * kSide;
};

// Brings (tile rows, kDepth) of an operand into shared memory as (depth, rows); neighbouring
// threads read neighbouring memory either way.
template <int kTile>
__device__ void fetch(const Operand& o, int64_t first, int64_t rows, int64_t depth_from,
                      int64_t depth, float (*to)[kTile + 4]) {
    for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
        const int i = o.transposed ? e % kTile : e / kDepth;
        const int d = o.transposed ? e / kTile : e % kDepth;
        const bool real = first + i < rows && depth_from + d < depth;
        to[d][i] = real ? o.at(first + i, depth_from + d) : 0.0f;
    }
}

template <int kSide>
__global__ void __launch_bounds__(kThreads) multiply(ProductArgs p) {
    constexpr int kTile = Sizes<kSide>::kTile;
    __shared__ float left[kDepth][kTile + 4], right[kDepth][kTile + 4];
    wait_for_predecessor();
    let_successor_start();
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile,
                  column0 = static_cast<int64_t>(blockIdx.x) * kTile;
    if (p.lower && column0 > row0 + kTile - 1) return;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[kSide][kSide] = {};
    for (int64_t d0 = 0; d0 < p.depth; d0 += kDepth) {
        fetch<kTile>(p.a, row0, p.m, d0, p.depth, left);
        fetch<kTile>(p.b, column0, p.n, d0, p.depth, right);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < kDepth; ++d) {
            float l[kSide], r[kSide];
#pragma unroll
            for (int i = 0; i < kSide; ++i) {
                l[i] = left[d][ty * kSide + i];
                r[i] = right[d][tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < kSide; ++i)
#pragma unroll
                for (int j = 0; j < kSide; ++j) sum[i][j] = fmaf(l[i], r[j], sum[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
        for (int j = 0; j < kSide; ++j) {
            const int64_t row = row0 + ty * kSide + i, column = column0 + tx + 16 * j;
            if (row >= p.m || column >= p.n || (p.lower && column > row)) continue;
            float& c = p.c[row * p.c_stride + column];
            c = p.alpha * sum[i][j] + (p.beta == 0 ? 0.0f : p.beta * c) +
                (p.bias.data ? p.bias[column] : 0.0f);
        }
}

template <int kSide>
void run(GpuStream& s, const char* op, const ProductArgs& p) {
    constexpr int kTile = Sizes<kSide>::kTile;
    launch(s, op, {dim3(blocks_for(p.n, kTile), blocks_for(p.m, kTile)), dim3(kThreads)},
           multiply<kSide>, p);
}

}  // namespace

void tile_product(GpuStream& s, const char* op, const ProductArgs& p) {
    if (p.m == 0 || p.n == 0) return;
    // Large tiles need enough of them to fill the chip.
    if (p.m * p.n >= int64_t{128} * 128 * s.multiprocessors())
        run<8>(s, op, p);
    else
        run<4>(s, op, p);
}

}  // namespace exl3::gpu
