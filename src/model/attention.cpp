#include "model/attention.h"

#include <cmath>

#include "model/rope_table.h"
#include "ops/ops.h"

namespace exl3 {
Attention::Attention(Stream& s, const Checkpoint& c, const AttentionSpec& spec, int hidden,
                     int layer)
    : spec_(spec), layer_(layer) {
    const auto linears = linears_of(spec, hidden);
    q_ = LinearSlot(s, c, linears[0]);
    k_ = LinearSlot(s, c, linears[1]);
    v_ = LinearSlot(s, c, linears[2]);
    o_ = LinearSlot(s, c, linears[3]);
    if (spec.q_norm) q_norm_.emplace(s, c, *spec.q_norm, spec.heads, spec.head_dim);
    if (spec.k_norm) k_norm_.emplace(s, c, *spec.k_norm, spec.kv_heads, spec.head_dim);
    if (spec_.scale == 0) spec_.scale = 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
    if (spec.rope && !depends_on_length(*spec.rope)) {
        const RopeTable table = rope_table(*spec.rope, 0);
        const Shape shape = {spec.rope->dims / 2};
        inv_freq_ = s.device().make_tensor(DType::f32, shape);
        s.copy(dense(table.inv_freq.data(), DType::f32, shape), inv_freq_.view);
        attention_factor_ = table.attention_factor;
    }
}

void Attention::rotate(Stream& s, const Batch& b, View heads, bool query) const {
    const RopeSpec& rope = *spec_.rope;
    const auto scope = s.workspace().scope();
    View inv_freq = inv_freq_.view;
    float factor = attention_factor_;
    if (!inv_freq) {
        const RopeTable table = rope_table(rope, b.rope_length);
        inv_freq = s.workspace().take(DType::f32, {rope.dims / 2});
        s.copy(dense(table.inv_freq.data(), DType::f32, {rope.dims / 2}), inv_freq);
        factor = table.attention_factor;
    }
    ops::rope(s, {.x = heads,
                  .positions = b.positions,
                  .inv_freq = inv_freq,
                  .style = rope.style,
                  .attention_factor = factor,
                  .query_scale_beta = query ? rope.query_scale_beta : 0,
                  .query_scale_length = static_cast<float>(rope.original_length)});
}

void Attention::forward(Stream& s, const Batch& b, View x) const {
    Workspace& w = s.workspace();
    const auto scope = w.scope();
    const int64_t tokens = x.shape[0], dim = spec_.head_dim, heads = spec_.heads,
                  kv = spec_.kv_heads;
    const View q = w.take(DType::f32, {tokens, heads * dim});
    const View k = w.take(DType::f32, {tokens, kv * dim});
    const View v = w.take(DType::f32, {tokens, kv * dim});
    if (b.tap) b.tap->see(s, q_.spec.tag, x);
    View gate;
    if (spec_.interleaved_gate) {
        gate = w.take(DType::f32, q.shape);
        const View both = w.take(DType::f32, {tokens, 2 * heads * dim});
        q_.linear->forward(s, x, both);
        ops::split_groups(s, {.x = both, .parts = {q, gate}, .groups = spec_.heads});
    } else {
        q_.linear->forward(s, x, q);
    }
    k_.linear->forward(s, x, k);
    v_.linear->forward(s, x, v);

    if (q_norm_) q_norm_->forward(s, q, q);
    if (k_norm_) k_norm_->forward(s, k, k);
    const View q_heads = reshape(q, {tokens, heads, dim}), k_heads = reshape(k, {tokens, kv, dim});
    if (spec_.rope) {
        rotate(s, b, q_heads, true);
        rotate(s, b, k_heads, false);
    }
    const KvView cache = b.cache->layer(layer_);
    ops::kv_append(
        s, {.k = k_heads, .v = reshape(v, {tokens, kv, dim}), .seq = b.seq, .cache = cache});
    const View y = w.take(DType::f32, {tokens, heads, dim});
    ops::attention(s, {.q = q_heads,
                       .cache = cache,
                       .seq = b.seq,
                       .y = y,
                       .scale = spec_.scale,
                       .softcap = spec_.softcap,
                       .window = spec_.window});
    if (gate) ops::head_gate(s, {.x = y, .gate = reshape(gate, y.shape)});
    const View joined = reshape(y, {tokens, heads * dim});
    if (b.tap) b.tap->see(s, o_.spec.tag, joined);
    o_.linear->forward(s, joined, x);
}

void Attention::each_linear(const LinearVisitor& visit) {
    for (LinearSlot* slot : {&q_, &k_, &v_, &o_}) visit(*slot);
}

}  // namespace exl3
