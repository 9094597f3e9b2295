#pragma once
// The host's side of exl3_matmul.cuh.
#include <cstddef>
#include <cstdint>

#include "gpu/numbers.cuh"

namespace exl3::gpu {

/// products = xr W for many rows; or, with one slice of k, y = products H * svh + bias.
struct MatmulArgs {
    const uint32_t* words = nullptr;  ///< in run order
    const __half* xr = nullptr;       ///< (rows, k) rotated, channels in matmul order
    const float* scale = nullptr;     ///< (rows): what xr was divided by
    int rows = 0, k_blocks = 0, groups = 0;
    int slices = 1;  ///< of k, each with products of its own
    uint32_t multiplier = 0, addend = 0;
    float* products = nullptr;  ///< (slices, rows, n), read and written with more than one slice
    const __half* svh = nullptr;
    Floats bias;
    float* y = nullptr;
    int64_t y_stride = 0;
    int out = 0;
};

/// Rows that one thread block multiplies with one decoding of its weights.
inline constexpr int kMatmulTiles[] = {32, 64, 128};
inline constexpr int kMatmulThreads = 128;
constexpr int matmul_stages(int tile) {
    return tile >= 128 ? 2 : 3;
}
/// Bytes of dynamic shared memory: the ring, and later the products of the tile.
constexpr size_t matmul_shared(int bits, int tile) {
    const size_t ring =
        static_cast<size_t>(matmul_stages(tile)) * static_cast<size_t>(tile * 256 + bits * 2048);
    const size_t products = static_cast<size_t>(tile) * 132 * 4;
    return ring > products ? ring : products;
}

using MatmulKernel = void (*)(MatmulArgs);
/// One function per file, so that they compile side by side. `pairs`: mcg and 3inst.
template <int K>
MatmulKernel matmul_kernel(bool pairs, int tile);

}  // namespace exl3::gpu
