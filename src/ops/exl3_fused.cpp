#include "ops/ops.h"

namespace exl3 {
namespace {

// What the matrices read: x itself, or scratch that holds what comes of it.
ConstView prepare(Stream& s, const Exl3FusedArgs& a) {
    if (!a.norm && !a.gated) return a.x;
    const View u = s.workspace().take(DType::f32, a.x.shape);
    if (a.norm)
        ops::rms_norm(s, {.x = a.x,
                          .weight = a.norm_weight,
                          .y = u,
                          .eps = a.eps,
                          .weight_bias = a.norm_weight_bias});
    else
        ops::gated_act(s, {.gate = a.x, .up = a.up, .y = u, .act = a.act});
    return u;
}

}  // namespace

void check(const Exl3FusedArgs& a) {
    EXL3_CHECK(a.count() > 0 && !(a.norm && a.gated));
}

void ops::exl3_fused_in_parts(Stream& s, const Exl3FusedArgs& a) {
    const auto scope = s.workspace().scope();
    const ConstView u = prepare(s, a);
    for (int i = 0; i < a.count(); ++i) {
        const Exl3FusedMatrix& m = a.matrices[static_cast<size_t>(i)];
        const auto inner = s.workspace().scope();
        const View y = a.add ? s.workspace().take(DType::f32, m.y.shape) : m.y;
        exl3_linear(s, {.x = u,
                        .packed = m.packed,
                        .suh = m.suh,
                        .svh = m.svh,
                        .bias = m.bias,
                        .y = y,
                        .codebook = m.codebook,
                        .bits = m.bits});
        if (a.add) ops::add(s, {.x = y, .y = m.y});
    }
}

}  // namespace exl3
