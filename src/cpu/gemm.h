#pragma once
#include <cstdint>

namespace exl3::cpu {

/// Depth of one pass: a panel of b this deep stays in the first-level cache (32 columns: 32 KiB).
inline constexpr int64_t kGemmDepth = 256;

/// A matrix to pack: element (line, i) is data[line * line_step + i * depth_step], one of the
/// steps 1.
struct GemmOperand {
    const float* data = nullptr;
    int64_t lines = 0;  ///< rows of op(a) or columns of op(b)
    int64_t line_step = 0, depth_step = 0;
};

/// c += alpha * (panels of a) (panels of b) over one pass of the depth. Panel i of a holds rows
/// [i * tile_rows, ...) as (depth, tile_rows), panel j of b columns [j * tile_columns, ...) as
/// (depth, tile_columns); lines past the end are zero.
struct GemmPass {
    const float* a = nullptr;
    const float* b = nullptr;
    float* c = nullptr;
    int64_t c_stride = 0;
    int64_t rows = 0, columns = 0, depth = 0;
    int tile_rows = 0, tile_columns = 0;
    float alpha = 1, beta = 0;
    bool lower = false;
};

/// What the tiers of gemm.cpp offer.
struct GemmKernels {
    /// Packs `width` lines from `line` on, depth [0, depth): out is (depth, width).
    void (*pack)(const GemmOperand& x, int64_t line, int64_t depth, int width,
                 float* out) = nullptr;
    /// Computes tiles of panels [a_begin, a_end) x [b_begin, b_end).
    void (*block)(const GemmPass& p, int64_t a_begin, int64_t a_end, int64_t b_begin,
                  int64_t b_end) = nullptr;
    int max_rows = 0;          ///< largest tile_rows; any from 1 on is possible
    int narrow = 0, wide = 0;  ///< the two possible tile_columns
};

}  // namespace exl3::cpu
