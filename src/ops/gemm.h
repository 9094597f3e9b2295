#pragma once
#include "core/tensor.h"

namespace exl3 {

/// c = alpha * op(a) op(b) + beta * c in f32, any strides between rows. For the quantizer:
/// Hessians, LDLQ feedback, factorizations.
struct GemmArgs {
    ConstView a;  ///< (m, k), or (k, m) with transpose_a; f32
    ConstView b;  ///< (k, n), or (n, k) with transpose_b; f32
    View c;       ///< (m, n) f32; must not alias a or b
    bool transpose_a = false;
    bool transpose_b = false;
    float alpha = 1;
    float beta = 0;      ///< 0: c is overwritten, whatever it held
    bool lower = false;  ///< only entries on and below the diagonal are needed (symmetric results)
};
void check(const GemmArgs& a);

/// The blockwise 128-point Hadamard transform, in place.
struct HadamardArgs {
    View x;                ///< (rows, dim) f32
    bool columns = false;  ///< false: along each row (dim % 128 == 0); true: down the columns
};
void check(const HadamardArgs& a);

}  // namespace exl3
