#pragma once
// The host's side of exl3_gemv.cuh.
#include <cstddef>
#include <cstdint>

#include "gpu/numbers.cuh"
#include "ops/activation.h"

namespace exl3::gpu {

/// How activations reach the tensor cores. mul1: the four bytes of a state's product are the
/// u8 operand and the activation's integer stands in four slots, so the sum over slots is
/// activation * byte sum, exactly; a second column holds what rounding to 8 bits left over.
/// mcg, 3inst: a weight is the sum of two halves, which stand in two slots with the activation
/// in both.
enum class Feed {
    byte1,  ///< mul1, 1 row, stored splat
    byte4,  ///< mul1, up to 4 rows: columns 2 r and 2 r + 1 are both integers of row r
    byte8,  ///< mul1, up to 8 rows: one product for each of the integers
    half1,  ///< mcg and 3inst, 1 row, stored doubled
    half8,  ///< mcg and 3inst, up to 8 rows
};
constexpr bool is_half(Feed a) {
    return a == Feed::half1 || a == Feed::half8;
}
/// Rows of which a lane holds sums.
constexpr int lane_rows(Feed a) {
    return a == Feed::byte8 || a == Feed::half8 ? 2 : 1;
}
/// Bytes of the activations of a k block in shared memory.
constexpr int act_bytes(Feed a) {
    return a == Feed::half1 ? 512 : a == Feed::byte1 || a == Feed::byte4 ? 1024 : 2048;
}

/// Of one row and k block: product = scale * first + rest * second + shift.
struct BlockScale {
    float scale, rest, shift, unused;
    int centre, centre_rest, unused2[2];
};

/// One matrix of a group that shares x, k, bits and codebook.
struct GemvMatrix {
    const uint32_t* words = nullptr;  ///< in run order
    const __half* suh = nullptr;
    const __half* svh = nullptr;
    Floats bias;
    int out = 0;  ///< columns that y has
    int first_group = 0;
    float* y = nullptr;
    int64_t y_stride = 0;
};

inline constexpr int kGemvMatrices = 4;
struct GemvArgs {
    const float* x = nullptr;
    int64_t x_stride = 0;
    int in = 0, rows = 0;
    int k_blocks = 0, blocks = 0;  ///< k / 128; blocks of 128 x 128 of all matrices
    int matrices = 1;
    int stages = 1;   ///< depth of a warp's ring in blocks of 128 rows by 64 columns
    int pending = 1;  ///< column groups whose parts a thread block may hold before they are added
    uint32_t multiplier = 0, addend = 0;
    /// (thread blocks, 8, 128): sums on their way, as the complement of their bits, so that zero
    /// is no sum (it would be a NaN that is never written). All zero between launches.
    uint32_t* mail = nullptr;
    /// What becomes of x before the first matrix sees it, as in Exl3FusedArgs.
    enum class Before : int { nothing, norm, gate } before = Before::nothing;
    Floats norm_weight;
    float eps = 0, norm_weight_bias = 0;
    Act act = Act::silu;
    const float* up = nullptr;
    int64_t up_stride = 0;
    bool add = false;
    /// (matrices, k blocks, ready_bytes): activations as shared memory takes them, made by a kernel
    /// of its own. Null: every thread block makes those it needs, which is quicker for one row.
    const uint8_t* ready = nullptr;
    GemvMatrix matrix[kGemvMatrices];
};
/// Words of mail.
constexpr size_t gemv_mail(int thread_blocks) {
    return static_cast<size_t>(thread_blocks) * 8 * 128;
}

inline constexpr int kUnitsPerBlock = 4;  ///< units of 128 rows by 32 columns side by side
/// u32 words of 128 rows by 32 columns in run order.
constexpr int unit_words(int bits) {
    return 128 * bits;
}

/// The pipeline of a number of bits.
constexpr int gemv_warps(int bits) {
    return bits <= 4 ? 16 : 8;
}
/// Units side by side that a warp takes at a time, 32 columns each: two share activations, waits
/// and scales.
inline constexpr int kGemvUnits = 2;
/// Warps that share columns and split rows.
constexpr int gemv_lanes(int bits) {
    return gemv_warps(bits) * kGemvUnits / kUnitsPerBlock;
}
constexpr int gemv_stage_bytes(int bits) {
    return unit_words(bits) * 4 * kGemvUnits;
}
/// Depth of a warp's ring: about 128 KB in flight.
constexpr int gemv_most_stages(int bits) {
    return bits == 1 ? 6 : bits == 2 ? 4 : bits == 3 || bits == 5 || bits == 6 ? 3 : 2;
}
inline constexpr int kGemvMostPending = 2;

/// Where a launch keeps what in dynamic shared memory.
struct GemvShared {
    int slots = 0, act = 0, scales = 0, parts = 0, bytes = 0;
    constexpr GemvShared(int bits, int act_size, const GemvArgs& a, int grid) {
        const int most = (a.blocks + grid - 1) / grid, lanes = gemv_lanes(bits);
        slots = most < a.k_blocks ? most : a.k_blocks;
        act = gemv_warps(bits) * a.stages * gemv_stage_bytes(bits);
        scales = act + slots * act_size;
        parts = scales + slots * a.rows * static_cast<int>(sizeof(BlockScale));
        bytes = parts + a.pending * lanes * a.rows * 512;
    }
};
/// Sets stages and pending to the most that fits in `limit` bytes of dynamic shared memory.
/// @return the bytes used, or 0 if these rows do not fit
inline int fit_gemv(GemvArgs& a, int bits, int act_size, int grid, int limit) {
    for (a.stages = gemv_most_stages(bits); a.stages > 0; --a.stages)
        for (a.pending = kGemvMostPending; a.pending > 0; --a.pending) {
            const GemvShared shared(bits, act_size, a, grid);
            if (shared.bytes <= limit) return shared.bytes;
        }
    return 0;
}

/// Bytes of a k block in `ready`: the activations, then a scale for each row.
constexpr int ready_bytes(Feed feed, int rows) {
    return act_bytes(feed) + rows * static_cast<int>(sizeof(BlockScale));
}

using GemvKernel = void (*)(GemvArgs);
/// Fills args.ready; a grid of (rows, matrices, k blocks / kReadyBlocks). Not for one row.
GemvKernel ready_kernel(Feed feed);
inline constexpr int kReadyBlocks = 8;  ///< k blocks that a thread block makes, one per warp
/// One function per file, so that they compile side by side.
template <int K>
GemvKernel gemv_kernel(Feed feed);

}  // namespace exl3::gpu
