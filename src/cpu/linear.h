#pragma once
#include "core/device.h"
#include "core/load.h"
#include "ops/linear.h"

namespace exl3::cpu {

inline constexpr int kLinearOutputs = 32;     ///< outputs that share a slice of x
inline constexpr int64_t kLinearDepth = 512;  ///< inputs in one slice; a multiple of every width

/// How one call of linear is cut: x as blocks of rows, interleaved by vector.
struct LinearPlan {
    float* x = nullptr;               ///< (rows, padded_in), block after block
    const int32_t* source = nullptr;  ///< row of x for each row; null: the same
    int64_t rows = 0, blocks = 0;
    int64_t padded_in = 0;  ///< inputs, up to a whole vector
    int64_t depth = 0;      ///< inputs in one slice
    int64_t ahead = 0;      ///< weights per output to prefetch in the first block
    /// @param width, block_rows  of the kernels that will run it
    LinearPlan(const LinearArgs& a, int width, int block_rows);
    /// Blocks differ by one row at most.
    int64_t first_row(int64_t block) const { return rows * block / blocks; }
};

/// One slice of one block of rows against up to kLinearOutputs outputs.
struct LinearBlock {
    int outputs = 0;
    int64_t y_stride = 0;
    int64_t depth = 0;
    int64_t ahead = 0;                 ///< weights of each of the next outputs to prefetch
    bool first = false, last = false;  ///< slice of the input
};

/// What the tiers of linear.cpp offer.
struct LinearKernels {
    void (*pack)(const LinearArgs&, const LinearPlan&, int64_t block) = nullptr;
    void (*outputs)(const LinearArgs&, const LinearPlan&, int64_t begin, int64_t end) = nullptr;
    int rows = 0;   ///< largest block
    int width = 0;  ///< floats in a vector
};
LinearKernels linear_kernels_of(const Stream& s);

}  // namespace exl3::cpu
