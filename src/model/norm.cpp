#include "model/norm.h"

#include "ops/ops.h"

namespace exl3 {
namespace {

std::vector<int64_t> head_weight_shape(HeadNormSpan span, int heads, int head_dim) {
    switch (span) {
        case HeadNormSpan::head: return {head_dim};
        case HeadNormSpan::all_heads: return {int64_t{heads} * head_dim};
        case HeadNormSpan::own_weight: return {heads, head_dim};
        case HeadNormSpan::group: return {int64_t{heads} * head_dim};
    }
    return {};
}

}  // namespace

Norm::Norm(Stream& s, const Checkpoint& c, const NormSpec& spec, std::vector<int64_t> weight_shape)
    : spec_(spec), dim_(weight_shape.back()) {
    if (spec.key.empty()) return;
    weight_ = load_tensor(s, c, (spec.key / "weight").str(), weight_shape);
    if (const Key bias = spec.key / "bias"; spec.layer_norm && c.has(bias.str()))
        bias_ = load_tensor(s, c, bias.str(), weight_shape);
}

Norm::Norm(Stream& s, const Checkpoint& c, const NormSpec& spec, int dim)
    : Norm(s, c, spec, std::vector<int64_t>{dim}) {}

Norm::Norm(Stream& s, const Checkpoint& c, const NormSpec& spec, int heads, int head_dim)
    : Norm(s, c, spec, head_weight_shape(spec.span, heads, head_dim)) {
    if (spec.span != HeadNormSpan::group) return;
    weight_.view = reshape(weight_.view, {heads, head_dim});
    dim_ = head_dim;
}

void Norm::forward(Stream& s, ConstView x, View y) const {
    const Shape pieces = {x.shape.numel() / dim_, dim_};
    if (x.shape != pieces) {
        x = reshape(x, pieces);
        y = reshape(y, pieces);
    }
    if (spec_.layer_norm)
        ops::layer_norm(
            s, {.x = x, .weight = weight_.view, .bias = bias_.view, .y = y, .eps = spec_.eps});
    else
        ops::rms_norm(s, {.x = x,
                          .weight = weight_.view,
                          .y = y,
                          .eps = spec_.eps,
                          .weight_bias = spec_.weight_bias});
}

}  // namespace exl3
