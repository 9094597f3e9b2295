#pragma once
#include "core/tensor.h"

namespace exl3 {

/// y = x Wᵀ + bias for plain weights, accumulated in f32.
struct LinearArgs {
    ConstView x;       ///< (rows, in) f32
    ConstView weight;  ///< (out, in) f32, f16 or bf16, as Hugging Face stores it
    ConstView bias;    ///< optional (out) f32, f16 or bf16
    View y;            ///< (rows, out) f32
};
void check(const LinearArgs& a);

/// y[r, h, :] = x[r, h, :] W_hᵀ: a plain matrix for each head.
struct HeadLinearArgs {
    ConstView x;       ///< (rows, heads, in) f32
    ConstView weight;  ///< (heads, out, in) f32, f16 or bf16
    View y;            ///< (rows, heads, out) f32; must not alias x
};
void check(const HeadLinearArgs& a);

}  // namespace exl3
