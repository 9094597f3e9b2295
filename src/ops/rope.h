#pragma once
#include "core/tensor.h"

namespace exl3 {

/// Which channels of a head rotate together.
enum class RopeStyle : uint8_t {
    neox,  ///< (i, i + r/2)
    gptj,  ///< (2i, 2i + 1)
};

/// Rotates the first r channels of every head by position * inv_freq, in place; the rest pass.
/// Then, where query_scale_beta is not 0, x *= 1 + beta * ln(1 + floor(position / original)).
/// Angles are computed in f64: at position 131072 an f32 product is off by 0.004 rad.
struct RopeArgs {
    View x;               ///< (tokens, heads, head_dim) f32, in place
    ConstView positions;  ///< (tokens) i32
    ConstView inv_freq;   ///< (r / 2) f32, r <= head_dim
    RopeStyle style = RopeStyle::neox;
    float attention_factor = 1;    ///< multiplies cos and sin (YaRN, longrope)
    float query_scale_beta = 0;    ///< Ministral 3 query scaling; 0 = off
    float query_scale_length = 1;  ///< original_max_position_embeddings of that scaling
};
void check(const RopeArgs& a);

}  // namespace exl3
