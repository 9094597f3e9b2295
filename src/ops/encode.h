#pragma once
#include "core/tensor.h"
#include "trellis/codebook.h"

namespace exl3 {

/// Targets are clamped to this magnitude: codebooks end at 4, and what lies beyond only adds an
/// error that no path can avoid, in costs so large that they would hide the rest of the tile.
inline constexpr float kMaxTarget = 32;
/// Never a NaN, so that a path exists whatever the target.
constexpr float clamp_target(float w) {
    return w > kMaxTarget ? kMaxTarget : w >= -kMaxTarget ? w : -kMaxTarget;
}

/// Finds, for every tile, a closed path through the trellis whose values are near the targets in
/// squared error (tail-biting Viterbi, two passes: docs/design/quant.md).
struct EncodeTilesArgs {
    ConstView target;  ///< (tiles, 256) f32 in trellis order; finite
    View states;       ///< (tiles, 256) u16, overwritten; closes the ring exactly
    View values;       ///< optional (tiles, 256) f32: the decoded values of `states`
    Codebook codebook{};
    int bits = 0;  ///< 1 to 8
};
void check(const EncodeTilesArgs& a);

}  // namespace exl3
