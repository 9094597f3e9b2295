#pragma once
#include "core/tensor.h"

namespace exl3 {

/// silu x/(1+e^-x); gelu 0.5 x (1+erf(x/sqrt 2)); gelu_tanh its tanh form; relu2 max(x,0)^2.
enum class Act : uint8_t { silu, gelu, gelu_tanh, relu2 };

/// y = act(gate) * up, elementwise, in f32.
struct GatedActArgs {
    ConstView gate;  ///< (rows, dim) f32
    ConstView up;    ///< (rows, dim) f32; empty: y = act(gate)
    View y;          ///< (rows, dim) f32; may alias gate or up
    Act act = Act::silu;
};
void check(const GatedActArgs& a);

/// y += x * scale: the residual stream.
struct AddArgs {
    ConstView x;  ///< (rows, dim) f32
    View y;       ///< (rows, dim) f32
    float scale = 1;
};
void check(const AddArgs& a);

/// x = cap * tanh(x / cap), in place.
struct SoftcapArgs {
    View x;         ///< (rows, dim) f32
    float cap = 0;  ///< positive
};
void check(const SoftcapArgs& a);

}  // namespace exl3
