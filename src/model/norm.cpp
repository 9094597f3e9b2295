#include "model/norm.h"

#include "ops/ops.h"

namespace exl3 {

Norm::Norm(Stream& s, const Checkpoint& c, const NormSpec& spec, int dim)
    : eps_(spec.eps), weight_bias_(spec.weight_bias) {
    if (!spec.key.empty()) weight_ = load_tensor(s, c, (spec.key / "weight").str(), {dim});
}

void Norm::forward(Stream& s, ConstView x, View y) const {
    ops::rms_norm(
        s, {.x = x, .weight = weight_.view, .y = y, .eps = eps_, .weight_bias = weight_bias_});
}

}  // namespace exl3
