#pragma once
// The shape that both norms share: short rows (heads) go to a warp each, long ones to a block.
#include <algorithm>

#include "gpu/launch.h"
#include "gpu/numbers.cuh"

namespace exl3::gpu {

/// Rows of up to this many values are a warp's.
inline constexpr int64_t kWarpRow = 512;

struct NormShape {
    int64_t rows = 0, dim = 0;
    unsigned threads = 0;  ///< of a block
    unsigned rows_per_block = 0;

    NormShape(int64_t rows_, int64_t dim_) : rows(rows_), dim(dim_) {
        const bool warp = dim <= kWarpRow;
        threads = warp ? 128
                       : static_cast<unsigned>(
                             std::min<int64_t>(1024, (dim / 4 + kWarp - 1) / kWarp * kWarp));
        rows_per_block = warp ? threads / kWarp : 1;
    }
    Launch launch() const { return {dim3(blocks_for(rows, rows_per_block)), dim3(threads)}; }
};

/// The threads that share a row: which row, this thread's place, and how they add up.
struct RowTeam {
    int64_t row;
    int place, size;
    bool warp;
    __device__ explicit RowTeam(int64_t dim) : warp(dim <= kWarpRow) {
        row = warp ? static_cast<int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp
                   : blockIdx.x;
        place = warp ? threadIdx.x % kWarp : threadIdx.x;
        size = warp ? kWarp : blockDim.x;
    }
    __device__ float sum(float v, float* room) const {
        return warp ? warp_sum(v) : block_sum(v, room);
    }
};

}  // namespace exl3::gpu
