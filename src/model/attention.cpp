#include "model/attention.h"

#include <cmath>

#include "model/rope_table.h"
#include "ops/ops.h"

namespace exl3 {
namespace {

struct Qkv {
    View q, k, v;
};
Qkv take_qkv(Stream& s, const AttentionSpec& spec, int64_t tokens) {
    Workspace& w = s.workspace();
    const int64_t kv = int64_t{spec.kv_heads} * spec.head_dim;
    const View q = w.take(DType::f32, {tokens, int64_t{spec.heads} * spec.head_dim});
    const View k = w.take(DType::f32, {tokens, kv});
    return {q, k, w.take(DType::f32, {tokens, kv})};
}

}  // namespace

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

bool Attention::turn_and_append(Stream& s, const Batch& b, View q, View k, View v) const {
    const auto over_heads = [&](const std::optional<Norm>& n) {
        return n ? n->over_heads(spec_.head_dim) : HeadNorm{};
    };
    const std::optional<HeadNorm> q_norm = over_heads(q_norm_), k_norm = over_heads(k_norm_);
    if (!q_norm || !k_norm || (spec_.rope && !inv_freq_)) return false;
    const RopeSpec rope = spec_.rope.value_or(RopeSpec{});
    ops::rope_append(s, {.q = q,
                         .k = k,
                         .v = v,
                         .q_norm = *q_norm,
                         .k_norm = *k_norm,
                         .positions = b.positions,
                         .inv_freq = inv_freq_.view,
                         .style = rope.style,
                         .attention_factor = attention_factor_,
                         .query_scale_beta = rope.query_scale_beta,
                         .query_scale_length = static_cast<float>(rope.original_length),
                         .seq = b.seq,
                         .cache = b.cache->layer(layer_)});
    return true;
}

View Attention::attend(Stream& s, const Batch& b, View q, View k, View v) const {
    const int64_t tokens = q.shape[0], dim = spec_.head_dim, heads = spec_.heads,
                  kv = spec_.kv_heads;
    const View q_heads = reshape(q, {tokens, heads, dim}), k_heads = reshape(k, {tokens, kv, dim}),
               v_heads = reshape(v, {tokens, kv, dim});
    if (!turn_and_append(s, b, q_heads, k_heads, v_heads)) {
        if (q_norm_) q_norm_->forward(s, q, q);
        if (k_norm_) k_norm_->forward(s, k, k);
        if (spec_.rope) {
            rotate(s, b, q_heads, true);
            rotate(s, b, k_heads, false);
        }
        ops::kv_append(s,
                       {.k = k_heads, .v = v_heads, .seq = b.seq, .cache = b.cache->layer(layer_)});
    }
    const KvView cache = b.cache->layer(layer_);
    const View y = s.workspace().take(DType::f32, {tokens, heads, dim});
    ops::attention(s, {.q = q_heads,
                       .cache = cache,
                       .seq = b.seq,
                       .y = y,
                       .scale = spec_.scale,
                       .softcap = spec_.softcap,
                       .window = spec_.window});
    return reshape(y, {tokens, heads * dim});
}

void Attention::forward(Stream& s, const Batch& b, View x) const {
    const auto scope = s.workspace().scope();
    const auto [q, k, v] = take_qkv(s, spec_, x.shape[0]);
    if (b.tap) b.tap->see(s, q_.spec.tag, x);
    View gate;
    if (spec_.interleaved_gate) {
        gate = s.workspace().take(DType::f32, q.shape);
        const View both = s.workspace().take(DType::f32, {x.shape[0], 2 * q.shape[1]});
        q_.linear->forward(s, x, both);
        ops::split_groups(s, {.x = both, .parts = {q, gate}, .groups = spec_.heads});
    } else {
        q_.linear->forward(s, x, q);
    }
    k_.linear->forward(s, x, k);
    v_.linear->forward(s, x, v);
    const View joined = attend(s, b, q, k, v);
    const Shape heads = {x.shape[0], spec_.heads, spec_.head_dim};
    if (gate) ops::head_gate(s, {.x = reshape(joined, heads), .gate = reshape(gate, heads)});
    if (b.tap) b.tap->see(s, o_.spec.tag, joined);
    o_.linear->forward(s, joined, x);
}

bool Attention::add_to(Stream& s, const Batch& b, const Norm* norm, View x) const {
    if (b.tap || spec_.interleaved_gate || !holds_exl3(o_)) return false;
    const auto scope = s.workspace().scope();
    const auto [q, k, v] = take_qkv(s, spec_, x.shape[0]);
    Exl3FusedArgs stages{.x = x};
    if (norm && !norm->lead(stages)) return false;
    if (!run_fused(s, stages, {{q_, q}, {k_, k}, {v_, v}})) return false;
    return run_fused(s, {.x = attend(s, b, q, k, v), .add = true}, {{o_, x}});
}

void Attention::each_linear(const LinearVisitor& visit) {
    for (LinearSlot* slot : {&q_, &k_, &v_, &o_}) visit(*slot);
}

}  // namespace exl3
