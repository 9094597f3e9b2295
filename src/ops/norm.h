#pragma once
#include "core/tensor.h"

namespace exl3 {

/// y[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + eps) * (weight[r % weight rows, :] + weight_bias), in
/// f32.
struct RmsNormArgs {
    ConstView x;       ///< (rows, dim) f32
    ConstView weight;  ///< (dim), or (n, dim) for rows that take turns; f32, f16 or bf16; empty:
                       ///< no weight, a plain normalisation
    View y;            ///< (rows, dim) f32; may alias x
    float eps = 0;     ///< added to the mean square; positive
    float weight_bias = 0;  ///< 1 where the checkpoint stores weight - 1 (Gemma)
};
void check(const RmsNormArgs& a);

/// y[r, :] = (x[r, :] - mean) / sqrt(variance + eps) * weight[r % weight rows, :] + bias, in f32.
struct LayerNormArgs {
    ConstView x;       ///< (rows, dim) f32
    ConstView weight;  ///< (dim), or (n, dim) for rows that take turns; f32, f16 or bf16
    ConstView bias;    ///< optional (dim)
    View y;            ///< (rows, dim) f32; may alias x
    float eps = 0;     ///< added to the variance; positive
};
void check(const LayerNormArgs& a);

}  // namespace exl3
