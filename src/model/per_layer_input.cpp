#include "model/per_layer_input.h"

#include <cmath>
#include <numbers>

#include "ops/ops.h"

namespace exl3 {
namespace {

// This layer's columns of the table of all layers.
Tensor load_table(Stream& s, const Checkpoint& c, const PerLayerInputSpec& spec) {
    const std::string name = spec.table / "weight";
    const int64_t columns = int64_t{spec.layers} * spec.dim;
    const TensorInfo* info = c.find(name).info;
    if (!info || info->dims != std::vector<int64_t>{spec.vocab, columns} ||
        (info->dtype != DType::f32 && info->dtype != DType::f16 && info->dtype != DType::bf16))
        throw Error(Errc::invalid_file, info ? c.where(name) : Where{c.folder().string(), name, {}},
                    (info ? "has shape " + to_string(info->dims) : std::string("is missing")) +
                        ", the model needs (" + std::to_string(spec.vocab) + ", " +
                        std::to_string(columns) + ") of f32, f16 or bf16");
    const Shape shape = {spec.vocab, spec.dim};
    Tensor t = s.device().make_tensor(info->dtype, shape);
    const auto* from =
        static_cast<const std::byte*>(c.view(name).data) +
        static_cast<size_t>(spec.layer) * static_cast<size_t>(spec.dim) * size_of(info->dtype);
    s.copy({from, info->dtype, shape, columns}, t.view);
    return t;
}

}  // namespace

PerLayerInput::PerLayerInput(Stream& s, const Checkpoint& c, const PerLayerInputSpec& spec,
                             int hidden)
    : gate_(load_linear(s, c, {.key = spec.gate, .in = hidden, .out = spec.dim})),
      out_(load_linear(s, c, {.key = spec.out, .in = spec.dim, .out = hidden})),
      projection_(load_linear(s, c,
                              {.key = spec.projection / spec.layer,
                               .in = hidden,
                               .out = spec.dim,
                               .fused = spec.projection,
                               .fused_row = spec.layer * spec.dim,
                               .fused_rows = spec.layers * spec.dim})),
      norm_(s, c, spec.norm, hidden),
      projection_norm_(s, c, spec.projection_norm, spec.dim),
      table_(load_table(s, c, spec)),
      dim_(spec.dim),
      hidden_(hidden) {}

void PerLayerInput::forward(Stream& s, const Batch& b, View x) const {
    Workspace& w = s.workspace();
    const auto scope = w.scope();
    const Shape narrow = {x.shape[0], dim_};
    const View own = w.take(DType::f32, narrow), sum = w.take(DType::f32, narrow);
    projection_->forward(s, b.embedded, own);
    // The norm takes away any factor of its input but for eps, which is why 1/sqrt(hidden) stays.
    ops::add(s, {.x = own, .y = own, .scale = 1 / std::sqrt(static_cast<float>(hidden_)) - 1});
    projection_norm_.forward(s, own, own);
    ops::embed(s, {.tokens = b.tokens,
                   .table = table_.view,
                   .y = sum,
                   .scale = std::sqrt(static_cast<float>(dim_))});
    ops::add(s, {.x = own, .y = sum});
    const View gate = w.take(DType::f32, narrow);
    gate_->forward(s, x, gate);
    ops::gated_act(s, {.gate = gate, .up = sum, .y = gate, .act = Act::gelu_tanh});
    ops::add(s, {.x = gate, .y = gate, .scale = std::numbers::sqrt2_v<float> / 2 - 1});
    const View y = w.take(DType::f32, x.shape);
    out_->forward(s, gate, y);
    norm_.forward(s, y, y);
    ops::add(s, {.x = y, .y = x});
}

}  // namespace exl3
