#pragma once
#include "core/tensor.h"

namespace exl3 {

/// silu x/(1+e^-x); gelu 0.5 x (1+erf(x/sqrt 2)); gelu_tanh its tanh form; relu2 max(x,0)^2;
/// xielu as struct Xielu says;
/// oai x/(1+e^(-1.702 x)) times up + 1 instead of up (gpt-oss).
enum class Act : uint8_t { silu, gelu, gelu_tanh, relu2, xielu, oai };

/// The numbers of xielu: positive x^2 + beta x where x > 0, and elsewhere
/// negative (e^min(x, eps) - 1 - x) + beta x.
struct Xielu {
    float positive = 0, negative = 0, beta = 0.5f, eps = -1e-6f;
};

/// Where a limit cuts. Both cut up to [-limit, limit] as well.
enum class ActClamp : uint8_t {
    before,  ///< gate to at most the limit, before the activation
    after,   ///< the activation to at most the limit
};

/// y = act(gate) * up, elementwise, in f32.
struct GatedActArgs {
    ConstView gate;  ///< (rows, dim) f32
    ConstView up;    ///< (rows, dim) f32; empty: y = act(gate)
    View y;          ///< (rows, dim) f32; may alias gate or up
    Act act = Act::silu;
    float limit = 0;  ///< 0: none
    ActClamp clamp = ActClamp::before;
    Xielu xielu{};
};
void check(const GatedActArgs& a);

enum class GateAct : uint8_t { sigmoid, softplus };

/// x *= act(gate), one gate for every value or for every head; in place.
struct HeadGateArgs {
    View x;          ///< (rows, heads, dim) f32
    ConstView gate;  ///< (rows, heads, dim or 1) f32
    GateAct act = GateAct::sigmoid;
};
void check(const HeadGateArgs& a);

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
