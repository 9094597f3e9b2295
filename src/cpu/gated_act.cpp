#define EXL3_ISA_FILE "cpu/gated_act.cpp"
#include "cpu/isa.h"

#include "cpu/elementwise.h"
#include "ops/activation.h"

EXL3_ISA_BEGIN

inline F32 silu(F32 x) {
    return x / (F32::set(1) + exp(F32::set(0) - x));
}

// 0.5 x (1 + tanh z) = x / (1 + e^-2z).
inline F32 gelu_tanh(F32 x) {
    const F32 z = F32::set(-1.5957691216057308f) * fma(F32::set(0.044715f) * x * x, x, x);
    return x / (F32::set(1) + exp(z));
}

// x erfc(-x / sqrt 2) / 2: unlike 1 + erf, no cancellation where x is negative. With t = |x| / sqrt
// 2 and u = 1 / (1 + 0.4 t), erfc t = e^(-t^2) u p(u), p a minimax fit on t <= 10 to 6.2e-8.
inline F32 gelu(F32 x) {
    // Past 14 the tail is 0; the limit keeps the square finite.
    const F32 size = min(F32::set(14), max(F32::set(0) - x, x));
    const F32 u = F32::set(1) / fma(size, F32::set(0.282842712474619f), F32::set(1));
    F32 p = F32::set(0.041253332048654556f);
    p = fma(p, u, F32::set(-0.14032062888145447f));
    p = fma(p, u, F32::set(0.08399010449647903f));
    p = fma(p, u, F32::set(0.08796120434999466f));
    p = fma(p, u, F32::set(0.07975859194993973f));
    p = fma(p, u, F32::set(0.19339235126972198f));
    p = fma(p, u, F32::set(0.2018878012895584f));
    p = fma(p, u, F32::set(0.2264430820941925f));
    p = fma(p, u, F32::set(0.22563423216342926f));
    // e^(-x^2 / 2) with the rounding error of x^2 put back: at |x| = 13 it is 7e-6 of the result.
    const F32 square = size * size, lost = fma(size, size, F32::set(0) - square);
    const F32 half = F32::set(-0.5f);
    F32 tail = exp(half * square) * u * p;
    tail = fma(tail, half * lost, tail) * F32::set(0.5f);  // erfc(t) / 2
    return x * select_le(x, F32::set(0), tail, F32::set(1) - tail);
}

inline F32 relu2(F32 x) {
    const F32 positive = max(F32::set(0), x);
    return positive * positive;
}

// e^x - 1 - x as tanh makes it: without the cancellation that exp(x) - 1 has near 0.
inline F32 xielu(F32 x, const Xielu& c) {
    const F32 zero = F32::set(0);
    F32 n;
    const F32 r = reduce_ln2(max(F32::set(-87.3f), min(F32::set(c.eps), x)), &n);
    const F32 one = scale2(F32::set(1), n);
    const F32 below = fma(exp_minus_1_core(r), one, one - F32::set(1)) - x;
    const F32 curve =
        select_le(x, zero, F32::set(c.negative) * below, F32::set(c.positive) * x * x);
    return fma(F32::set(c.beta), x, curve);
}

template <F32 act(F32)>
struct Plain {
    F32 operator()(F32 x) const { return act(x); }
};
struct WithNumbers {
    const Xielu& numbers;
    F32 operator()(F32 x) const { return xielu(x, numbers); }
};

inline F32 sigmoid_1702(F32 x) {
    return x / (F32::set(1) + exp(F32::set(-1.702f) * x));
}

// The limits come first in min and max: of two operands, one NaN, x86 returns the second.
template <typename A>
void gated_act_as(A act, const GatedActArgs& a, const float* gate, const float* up, float* y,
                  int64_t n) {
    const float none = __builtin_inff(), limit = a.limit > 0 ? a.limit : none;
    const bool before = a.clamp == ActClamp::before;
    const F32 gate_limit = F32::set(before ? limit : none),
              act_limit = F32::set(before ? none : limit);
    const F32 high = F32::set(limit), low = F32::set(-limit);
    const F32 offset = F32::set(a.act == Act::oai ? 1.0f : 0.0f);
    for (int64_t i = 0; i < n; i += F32::width) {
        const int64_t some = lesser(F32::width, n - i);
        const F32 v = min(act_limit, act(min(gate_limit, F32::load(gate + i, some))));
        if (!up) {
            v.store(y + i, some);
            continue;
        }
        const F32 u = max(low, min(high, F32::load(up + i, some)));
        (v * (u + offset)).store(y + i, some);
    }
}

void gated_act_run(const GatedActArgs& a, const float* gate, const float* up, float* y, int64_t n) {
    switch (a.act) {
        case Act::silu: return gated_act_as(Plain<silu>(), a, gate, up, y, n);
        case Act::gelu: return gated_act_as(Plain<gelu>(), a, gate, up, y, n);
        case Act::gelu_tanh: return gated_act_as(Plain<gelu_tanh>(), a, gate, up, y, n);
        case Act::relu2: return gated_act_as(Plain<relu2>(), a, gate, up, y, n);
        case Act::xielu: return gated_act_as(WithNumbers{a.xielu}, a, gate, up, y, n);
        case Act::oai: return gated_act_as(Plain<sigmoid_1702>(), a, gate, up, y, n);
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void gated_act(Stream& s, const GatedActArgs& a) {
    const auto run = EXL3_ISA_PICK(s, gated_act_run);
    for_each_run(pool_of(s), a.y.shape[0], a.y.shape[1], [&](int64_t r, int64_t b, int64_t e) {
        run(a, a.gate.row<float>(r) + b, a.up ? a.up.row<float>(r) + b : nullptr,
            a.y.row<float>(r) + b, e - b);
    });
}

}  // namespace exl3::cpu
#endif
