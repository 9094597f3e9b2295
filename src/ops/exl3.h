#pragma once
#include "core/tensor.h"
#include "trellis/codebook.h"

namespace exl3 {

/// Reorders stored trellis words into the layout this device's exl3 ops read; a permutation of
/// words, so the size is the same. `ref` copies.
struct Exl3RepackArgs {
    ConstView trellis;  ///< (k/16, n/16, 16*bits) i16, as stored; host memory
    View packed;        ///< the same shape, in device memory, dense, 64-byte aligned
    int bits = 0;       ///< 1 to 8
};
void check(const Exl3RepackArgs& a);

/// y = ((x * suh) H W H) * svh + bias with W the inner matrix that `packed` codes; H the blockwise
/// 128-point Hadamard transform. docs/format.md "Forward pass".
struct Exl3LinearArgs {
    ConstView x;       ///< (rows, in) f32, in <= k: missing input channels are zero
    ConstView packed;  ///< (k/16, n/16, 16*bits) i16 in this device's layout (exl3_repack)
    ConstView suh;     ///< (k) f16
    ConstView svh;     ///< (n) f16
    ConstView bias;    ///< optional (at least out) f32, f16 or bf16
    View y;            ///< (rows, out) f32, out <= n: further output channels are dropped
    Codebook codebook{};
    int bits = 0;  ///< 1 to 8
};
void check(const Exl3LinearArgs& a);

/// The inner matrix as numbers: y[i, j] = codebook value, i input channel, j output channel.
struct Exl3DecodeArgs {
    ConstView packed;  ///< (k/16, n/16, 16*bits) i16 in this device's layout
    View y;            ///< (k, n) f32 or f16
    Codebook codebook{};
    int bits = 0;
};
void check(const Exl3DecodeArgs& a);

}  // namespace exl3
