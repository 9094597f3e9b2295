#include "trellis/hadamard.h"

#include "gpu/launch.h"
#include "gpu/numbers.cuh"
#include "ops/gemm.h"

namespace exl3::gpu {
namespace {

constexpr int kLineWarps = 8;

// A warp takes 128 neighbours, four per lane: two steps inside a lane, five between lanes.
__global__ void transform_rows(float* x, int64_t stride, int64_t rows, int64_t runs) {
    wait_for_predecessor();
    let_successor_start();
    const int lane = threadIdx.x % kWarp;
    const int64_t run = static_cast<int64_t>(blockIdx.x) * kLineWarps + threadIdx.x / kWarp;
    if (run >= rows * runs) return;
    float* at = x + run / runs * stride + run % runs * kHadamard + lane * 4;
    float v[4] = {at[0] + at[1], at[0] - at[1], at[2] + at[3], at[2] - at[3]};
    float w[4] = {v[0] + v[2], v[1] + v[3], v[0] - v[2], v[1] - v[3]};
    for (int m = 1; m < kWarp; m *= 2)
        for (float& value : w) {
            const float other = shfl_xor(value, m);
            value = lane & m ? other - value : value + other;
        }
    for (int i = 0; i < 4; ++i) at[i] = w[i] * kHadamardScale;
}

constexpr int kColumns = 32;

// A block takes 128 rows of 32 columns through shared memory.
__global__ void transform_columns(float* x, int64_t stride, int64_t columns) {
    __shared__ float tile[kHadamard][kColumns + 1];
    wait_for_predecessor();
    let_successor_start();
    const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
    float* at = x + static_cast<int64_t>(blockIdx.y) * kHadamard * stride + column;
    const bool real = column < columns;
    for (int r = threadIdx.y; r < kHadamard; r += blockDim.y)
        tile[r][threadIdx.x] = real ? at[r * stride] : 0;
    for (int half = 1; half < kHadamard; half *= 2) {
        __syncthreads();
        for (int pair = threadIdx.y; pair < kHadamard / 2; pair += blockDim.y) {
            const int i = pair / half * 2 * half + pair % half;
            const float a = tile[i][threadIdx.x], b = tile[i + half][threadIdx.x];
            tile[i][threadIdx.x] = a + b;
            tile[i + half][threadIdx.x] = a - b;
        }
    }
    __syncthreads();
    for (int r = threadIdx.y; r < kHadamard && real; r += blockDim.y)
        at[r * stride] = tile[r][threadIdx.x] * kHadamardScale;
}

}  // namespace

void hadamard(Stream& s, const HadamardArgs& a) {
    GpuStream& g = gpu_stream(s);
    const int64_t rows = a.x.shape[0], dim = a.x.shape[1];
    if (a.columns) {
        launch(g, "hadamard",
               {dim3(blocks_for(dim, kColumns), static_cast<unsigned>(rows / kHadamard)),
                dim3(kColumns, 16)},
               transform_columns, a.x.as<float>(), a.x.row_stride, dim);
        return;
    }
    const int64_t runs = dim / kHadamard;
    launch(g, "hadamard", {dim3(blocks_for(rows * runs, kLineWarps)), dim3(kLineWarps * kWarp)},
           transform_rows, a.x.as<float>(), a.x.row_stride, rows, runs);
}

}  // namespace exl3::gpu
