#include "model/dual_mlp.h"

#include <cmath>

#include "io/convert.h"
#include "ops/ops.h"

namespace exl3 {

DualMlp::DualMlp(Stream& s, const Checkpoint& c, const DualMlpSpec& spec, int hidden)
    : dense_(s, c, spec.dense, hidden),
      moe_(s, c, spec.moe, hidden),
      dense_norm_(s, c, spec.dense_norm, hidden),
      dense_post_(s, c, spec.dense_post_norm, hidden),
      moe_norm_(s, c, spec.moe_norm, hidden),
      moe_post_(s, c, spec.moe_post_norm, hidden),
      router_weight_(load_f32_vector(s, c, spec.router_scale, hidden)),
      eps_(spec.eps) {
    std::vector<float> scale = read_f32(c, spec.router_scale);
    for (float& v : scale) v /= std::sqrt(static_cast<float>(hidden));
    s.copy(dense(scale.data(), DType::f32, {hidden}), router_weight_.view);
    s.synchronize();  // `scale` goes away here
}

void DualMlp::forward(Stream& s, const Batch& b, View x) const {
    Workspace& w = s.workspace();
    const auto scope = w.scope();
    const View routed_by = w.take(DType::f32, x.shape);
    ops::rms_norm(s, {.x = x, .weight = router_weight_.view, .y = routed_by, .eps = eps_});
    const View y = w.take(DType::f32, x.shape);
    moe_norm_.forward(s, x, y);
    moe_.forward(s, b, routed_by, y);
    moe_post_.forward(s, y, y);
    dense_norm_.forward(s, x, x);
    dense_.forward(s, b, x);
    dense_post_.forward(s, x, x);
    ops::add(s, {.x = y, .y = x});
}

void DualMlp::each_linear(const LinearVisitor& visit) {
    dense_.each_linear(visit);
    moe_.each_linear(visit);
}

}  // namespace exl3
