#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/half.h"
#include "core/device.h"
#include "quant/hessian.h"
#include "trellis/codebook.h"

namespace exl3 {

struct QuantParams {
    std::string name;  ///< of the matrix, for errors
    int bits = 4;      ///< 1 to 8
    Codebook codebook = kMul1;
    uint64_t seed = 0;   ///< of the random signs; matrices of one Hessian may share it
    bool plain = false;  ///< the published algorithm, as exactly as the seed allows
    int draws = 1;  ///< times the matrix is rounded with other signs, of which the best is kept
    /// Output channels are scaled by this power of their rms: 0.5 makes the error least, 1 makes it
    /// the same share of every channel. Not with `plain`.
    double column_power = 0.5;
    /// Metric of the outputs (n, n): the error is then that of tr(O Eᵀ H E). Not with `plain`, nor
    /// without a Hessian of the inputs, nor above 5 bits, where the codebook's reach matters more.
    const FinalHessian* output = nullptr;
    bool refit = true;  ///< fit both scales to the rounded matrix afterwards; not with `plain`
};

/// A quantized matrix (docs/format.md) and how far it is from its source.
struct QuantResult {
    std::vector<uint16_t> trellis;  ///< (k/16, n/16, 16 * bits)
    std::vector<f16> suh, svh;      ///< (k), (n)
    double proxy_err = 0;  ///< tr(EᵀHE) / tr(WᵀHW), H undamped; without a Hessian |E|² / |W|²
};

/// Rounds a matrix to the trellis format (docs/design/quant.md).
/// @param weight  (k, n) f32, input channels first, both multiples of 128, finite
/// @param hessian of its input; nullptr or not usable: every tile is rounded by itself
/// Columns that are all zero get svh = 0, rows that are all zero suh = 0 (with `plain` an ordinary
/// scale), and decode to exact zeros.
/// Throws Error{invalid_argument} naming the matrix and the element for a non-finite weight. The
/// same input and seed give the same bits on one kind of device.
QuantResult quantize_linear(Stream& s, ConstView weight, const FinalHessian* hessian,
                            const QuantParams& params);

}  // namespace exl3
