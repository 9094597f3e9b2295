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

}  // namespace exl3
