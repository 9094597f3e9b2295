#pragma once
#include <algorithm>

#include "core/device.h"
#include "cpu/exl3_runs.h"

namespace exl3::cpu {

// Rows multiplied by one decoding of the weights: with more, the products of a column band (96 KiB)
// and the activations of a block (48 KiB) start to leave the second-level cache, with fewer the
// decoding weighs more. 214 GMAC/s at 192 on Zen 5, 200 at 96, 170-190 at 512.
inline constexpr int64_t kMostRows = 192;
// Floats of products held at a time: bounds the scratch of wide layers (32 MiB).
inline constexpr int64_t kMostProducts = int64_t{1} << 23;

/// One pass over the weights for a group of rows.
struct Pass {
    const Exl3LinearArgs& a;
    const Exl3Kernels& kernels;
    QuantizedRows x;
    float* products = nullptr;  ///< (n / 128, rows, 128), each column pair in run order
    int64_t first_row = 0;

    const uint32_t* words(int64_t pair) const {
        return a.packed.as<uint32_t>() + pair * x.blocks * kBlockTiles * run_words(a.bits);
    }
    float* product(int64_t pair, int64_t row) const {
        constexpr int64_t kPairs = kBlock / kRunColumns;
        return products + ((pair / kPairs * x.rows + row) * kPairs + pair % kPairs) * kRunColumns;
    }
    void multiply(int64_t begin, int64_t end) const;
};

// Products of the column pairs [begin, end), at most four of one band: panel by panel, and for each
// panel group after group of rows, sized evenly.
inline void Pass::multiply(int64_t begin, int64_t end) const {
    alignas(64) int32_t panels[kBlock / kRunColumns][kPanel];
    for (int64_t p = begin; p < end; ++p)
        for (int64_t r = 0; r < x.rows; ++r) std::fill_n(product(p, r), kRunColumns, 0.0f);
    const int64_t groups = (x.rows + kernels.panel_rows - 1) / kernels.panel_rows;
    for (int64_t b = 0; b < x.blocks; ++b) {
        for (int64_t p = begin; p < end; ++p)
            kernels.panel(words(p) + b * kBlockTiles * run_words(a.bits), a.codebook.multiplier,
                          panels[p - begin]);
        for (int64_t g = 0; g < groups; ++g) {
            const int64_t row = x.rows * g / groups, next = x.rows * (g + 1) / groups;
            for (int64_t p = begin; p < end; ++p)
                kernels.multiply(panels[p - begin], static_cast<int>(next - row), x.block(b, row),
                                 x.start + b * x.rows + row, x.scale + b * x.rows + row,
                                 product(p, row), kBlock);
        }
    }
}

/// Scratch for a pass over up to `rows` rows, until the workspace scope ends. `a` and `kernels` are
/// referred to.
Pass take_pass(Stream& s, const Exl3LinearArgs& a, const Exl3Kernels& kernels, int64_t rows);

Exl3Kernels exl3_kernels_of(const Stream& s, int bits, CodebookKind kind);

}  // namespace exl3::cpu
