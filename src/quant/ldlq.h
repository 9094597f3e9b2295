#pragma once
#include <cstdint>
#include <vector>

#include "core/device.h"
#include "trellis/codebook.h"

namespace exl3 {

/// The trellis of a matrix: its bits per weight and codebook.
struct TrellisKind {
    int bits = 4;
    Codebook codebook = kMul1;
};

/// Rounds targets (k, n) f32 to the trellis from the last row of tiles to the first. With a factor
/// every row of tiles first takes up what the rows after it left over (LDLQ), which minimises the
/// error in the metric that `factor` belongs to.
/// @param target  (k, n) f32, both multiples of 128; overwritten with the remaining errors,
///                target - value
/// @param factor  (k, k) L of block_ldl, or empty: every tile is rounded by itself
/// @param states  (k/16, n/16, 256), rows of tiles `state_stride` states apart, overwritten
void round_to_trellis(Stream& s, View target, const std::vector<float>& factor,
                      const TrellisKind& kind, uint16_t* states, int64_t state_stride);

/// The same with a metric on either side: minimises tr(O Eᵀ H E) as far as rounding one tile after
/// the other can. Every tile takes up what the tiles below it left over, through the factor of H,
/// and what the tiles to its right left over, through that of O.
/// @param in   (k, k) L of block_ldl, of H
/// @param out  (n, n) of O
void round_two_sided(Stream& s, View target, const std::vector<float>& in,
                     const std::vector<float>& out, const TrellisKind& kind, uint16_t* states,
                     int64_t state_stride);

}  // namespace exl3
