#pragma once
#include <vector>

#include "quant/hessian.h"

namespace exl3 {

/// How the rows of a matrix (its input channels) are scaled before rounding, and the metric that
/// goes with it.
struct RowScales {
    std::vector<float> scale;   ///< (k), signed; zero for rows that are all zero
    std::vector<float> factor;  ///< (k, k) L of block_ldl, or empty without a Hessian
    double growth = 1;          ///< variance that feedback adds to the targets, as a factor
};

/// Picks scales that keep the error in the metric of H small.
/// After division by the scales and a Hadamard transform every target has variance one, whatever
/// the scales, if they are normalised in each block of 128; the error is spread back in proportion
/// to them. With LDLQ it is proportional to tr D of the rotated metric.
/// @param rms     (k), root mean square of each row
/// @param error   mean squared error of rounding a target of variance one
/// @param budget  factorizations that may be spent: signs are drawn and scales improved with them
RowScales choose_row_scales(Stream& s, const FinalHessian* h, const std::vector<double>& rms,
                            double error, int budget, uint64_t seed);

/// Random signs, one per element.
void draw_signs(std::vector<float>& x, uint64_t seed);

/// Multiplies `scale` so that in every block of 128 the mean of (rms / scale)^2 is one. A zero
/// scale counts as zero.
void normalize_blocks(const std::vector<double>& rms, std::vector<float>& scale);

}  // namespace exl3
