#pragma once
// Run order and the integers of the CPU's exl3 kernels; docs/design/cpu.md has the reasons.
//
// The 32 positions 32 g .. 32 g + 31 of a tile, a run, are K whole 32-bit words and hold all 16
// rows of the columns g and g + 8. exl3_repack puts the 16 runs of two neighbouring tiles side by
// side: word i of run `lane` of tile row t of column pair c stands at
//   packed[((c * tile_rows + t) * bits + i) * 16 + lane],
// lanes 0-7 being the left tile. A column pair is thus one contiguous stream over all of k.
//
// Results of a column pair come in run order too: 32 values, value 16 h + lane being column
// 16 (lane / 8) + 8 h + lane % 8.
#include <cstdint>

#include "ops/exl3.h"
#include "trellis/codebook.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3::cpu {

inline constexpr int kRunLanes = 16;
inline constexpr int kRunColumns = 2 * kTile;            ///< columns of a column pair
inline constexpr int kBlock = kHadamard;                 ///< input channels that share a scale
inline constexpr int kBlockTiles = kBlock / kTile;       ///< tile rows of a block
inline constexpr int kPanel = kBlock / 2 * kRunColumns;  ///< i32 in a panel

/// Bytes from the words in use to those asked of memory.
inline constexpr int kRunPrefetch = 2048;

/// u32 words of one tile row of a column pair.
constexpr int64_t run_words(int bits) {
    return int64_t{kRunLanes} * bits;
}

/// How the kernels write a weight as an integer: weight = unit * (integer - centre - fraction).
/// mul1: the byte sum, exact up to the f16 rounding of the codebook value (2.1e-4 of its rms).
/// mcg, 3inst: each half in units of 2^-10, rounded down, negatives as one's complement, which puts
/// the sum one below its value on average; the unit is the least-squares fit over all states. The
/// residual is 3.6e-4 of the rms.
struct IntegerWeights {
    float unit = 0;
    int32_t centre = 0;
    float fraction = 0;
    /// Largest |activation|: 128 products of it with the largest |integer - centre| stay below
    /// 2^31, so the sum of a block is exact whatever its terms (intermediate sums may wrap).
    int32_t activation_limit = 0;
};
constexpr IntegerWeights integer_weights(CodebookKind kind) {
    if (kind == CodebookKind::mul1)
        return {.unit = kMul1Scale,
                .centre = 510,
                .fraction = -(kMul1Bias + 1534 * kMul1Scale) / kMul1Scale,
                .activation_limit = 32767};
    return {.unit = 0x1p-10f * 0.99967f, .centre = -1, .fraction = 0, .activation_limit = 4095};
}

/// Rows of activations as the kernels read them: x * suh, transformed, in integers with one scale
/// per row and block.
struct QuantizedRows {
    int64_t rows = 0, blocks = 0;
    int16_t* q = nullptr;      ///< (blocks, rows, 128)
    int32_t* twice = nullptr;  ///< one row only: (k) each activation in both halves
    int32_t* start = nullptr;  ///< (blocks, rows) minus centre times the sum of the block
    float* scale = nullptr;    ///< (blocks, rows) product = scale * (start + sum of q * integer)
    float* shift = nullptr;    ///< (rows) what the fraction adds to every product of the row

    const int16_t* block(int64_t b, int64_t row = 0) const { return q + (b * rows + row) * kBlock; }
};

/// What one tier offers for one number of bits and one codebook.
struct Exl3Kernels {
    /// Fills what belongs to row r of `rows` from row first_row + r of x.
    void (*quantize_row)(const Exl3LinearArgs& a, const IntegerWeights& weights, int64_t first_row,
                         const QuantizedRows& rows, int64_t r) = nullptr;
    /// One row times one column pair over all blocks, in run order.
    void (*dot)(const uint32_t* words, const QuantizedRows& x, uint32_t multiplier,
                float* out) = nullptr;
    /// The integers of one block of a column pair: panel[(i * 2 + h) * 16 + lane] holds channels
    /// 2 i (low half) and 2 i + 1 of column h of `lane`.
    void (*panel)(const uint32_t* words, uint32_t multiplier, int32_t* panel) = nullptr;
    /// c[r, 0:32] += scale[r] * (start[r] + q[r, :] * panel) for `rows` rows, at most panel_rows.
    void (*multiply)(const int32_t* panel, int rows, const int16_t* q, const int32_t* start,
                     const float* scale, float* c, int64_t c_stride) = nullptr;
    int panel_rows = 0;
    /// y[row, column : column + 128] from 128 products of a band, short of what y does not have.
    void (*finish)(const Exl3LinearArgs& a, const float* products, float shift, int64_t row,
                   int64_t column) = nullptr;
};

}  // namespace exl3::cpu
