#pragma once
#include <optional>
#include <vector>

#include "base/half.h"
#include "core/device.h"
#include "quant/hessian.h"
#include "trellis/codebook.h"

namespace exl3 {

struct QuantParams {
    int bits = 4;  ///< 1 to 8
    Codebook codebook = kMul1;
    uint64_t seed = 0;   ///< of the random signs; matrices of one Hessian may share it
    bool plain = false;  ///< the published algorithm: signs alone in the metric, no refits
    int draws = 0;       ///< sign draws of which the best is kept; 0: chosen by bits
    bool refit = true;   ///< fit the output scales to the rounded matrix afterwards
};

/// A quantized matrix (docs/format.md) and how far it is from its source.
struct QuantResult {
    std::vector<uint16_t> trellis;  ///< (k/16, n/16, 16 * bits)
    std::vector<f16> suh, svh;      ///< (k), (n)
    double proxy_err = 0;  ///< tr(EᵀHE) / tr(WᵀHW), H damped; without a Hessian |E|² / |W|²
};

/// Rounds a matrix to the trellis format.
/// @param weight  (k, n) f32, input channels first, both multiples of 128, finite
/// @param hessian of its input; nullptr or not usable: every tile is rounded by itself
/// Columns that are all zero get svh = 0 and decode to exact zeros.
/// Throws Error{invalid_argument} for a non-finite weight. The same input and seed give the same
/// bits on one kind of device.
QuantResult quantize_linear(Stream& s, ConstView weight, const FinalHessian* hessian,
                            const QuantParams& params);

}  // namespace exl3
