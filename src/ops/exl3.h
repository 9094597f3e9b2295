#pragma once
#include <array>

#include "core/tensor.h"
#include "ops/activation.h"
#include "trellis/codebook.h"

namespace exl3 {

class Stream;

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

/// One matrix of Exl3FusedArgs; members as in Exl3LinearArgs.
struct Exl3FusedMatrix {
    ConstView packed, suh, svh, bias;
    View y;  ///< (rows, out) f32
    Codebook codebook{};
    int bits = 0;
};

/// Up to four matrices that read one input, what comes before them and what follows, in one go:
///   u = x; with `norm` u = rms_norm(x); with `gated` u = act(x) * up (up may be empty: act(x))
///   y_i = u W_i + bias_i, or y_i += u W_i + bias_i with `add`
/// Equal to rms_norm, gated_act, exl3_linear and add one after the other, which is what a device
/// without a kernel for it does.
struct Exl3FusedArgs {
    ConstView x;  ///< (rows, in) f32
    bool norm = false;
    ConstView norm_weight;       ///< (in) f32, f16 or bf16, or empty; read with `norm`
    float eps = 0;               ///< positive with `norm`
    float norm_weight_bias = 0;  ///< 1 where the checkpoint stores weight - 1
    bool gated = false;          ///< not together with `norm`
    ConstView up;                ///< (rows, in) f32 or empty; read with `gated`
    Act act = Act::silu;
    std::array<Exl3FusedMatrix, 4> matrices;  ///< those with a y count, the others follow them
    bool add = false;  ///< adds to what the y hold; no y aliases x or another y

    int count() const {
        int n = 0;
        while (n < 4 && matrices[static_cast<size_t>(n)].y) ++n;
        return n;
    }
};
void check(const Exl3FusedArgs& a);
namespace ops {
/// exl3_fused by its parts, on the stream's device.
void exl3_fused_in_parts(Stream& s, const Exl3FusedArgs& a);
}  // namespace ops

/// The inner matrix as numbers: y[i, j] = codebook value, i input channel, j output channel.
struct Exl3DecodeArgs {
    ConstView packed;  ///< (k/16, n/16, 16*bits) i16 in this device's layout
    View y;            ///< (k, n) f32 or f16
    Codebook codebook{};
    int bits = 0;
};
void check(const Exl3DecodeArgs& a);

}  // namespace exl3
