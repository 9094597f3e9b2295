#pragma once
// Matrix products in f32, exact to its rounding, tiled through shared memory: what linear (of many
// rows) and gemm run on.
#include "gpu/launch.h"
#include "gpu/numbers.cuh"

namespace exl3::gpu {

/// An operand: element (i, d) of row i (of the result's rows or columns) and depth d.
struct Operand {
    Floats values;
    int64_t stride = 0;       ///< elements from one stored row to the next
    bool transposed = false;  ///< stored as (depth, rows) instead of (rows, depth)
    __device__ float at(int64_t i, int64_t d) const {
        return values[transposed ? d * stride + i : i * stride + d];
    }
};

struct ProductArgs {
    Operand a, b;  ///< c (m, n) = alpha * a b^T + beta * c + bias
    float* c = nullptr;
    int64_t c_stride = 0, m = 0, n = 0, depth = 0;
    float alpha = 1, beta = 0;
    Floats bias;         ///< (n) or without data
    bool lower = false;  ///< only entries on and below the diagonal
};

/// Queues the product. `op` names it in errors.
void tile_product(GpuStream& s, const char* op, const ProductArgs& p);

}  // namespace exl3::gpu
