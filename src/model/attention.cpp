#include "model/attention.h"

#include <cmath>

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
    size_t next = 0;
    q_ = LinearSlot(s, c, linears[next++]);
    if (spec.kv_layer < 0) k_ = LinearSlot(s, c, linears[next++]);
    if (spec.kv_layer < 0 && !spec.values_from_keys) v_ = LinearSlot(s, c, linears[next++]);
    if (!spec.gate.empty() && spec.gate_channels) gate_ = LinearSlot(s, c, linears[next++]);
    o_ = LinearSlot(s, c, linears[next++]);
    if (!spec.gate.empty() && !spec.gate_channels)
        head_gate_ = load_linear(s, c, {.key = spec.gate, .in = hidden, .out = spec.heads});
    if (spec.q_norm) q_norm_.emplace(s, c, *spec.q_norm, spec.heads, spec.head_dim);
    if (spec.kv_layer < 0) {
        if (spec.k_norm) k_norm_.emplace(s, c, *spec.k_norm, spec.kv_heads, spec.head_dim);
        if (spec.v_norm) v_norm_.emplace(s, c, *spec.v_norm, spec.kv_heads, spec.head_dim);
    }
    if (!spec.sinks.empty()) sinks_ = load_f32_vector(s, c, spec.sinks.str(), spec.heads);
    if (spec_.scale == 0) spec_.scale = 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
    if (spec.rope) rope_.emplace(s, *spec.rope);
}

bool Attention::turn_and_append(Stream& s, const Batch& b, View q, View k, View v) const {
    const auto over_heads = [&](const std::optional<Norm>& n) {
        return n ? n->over_heads(spec_.head_dim) : HeadNorm{};
    };
    const std::optional<HeadNorm> q_norm = over_heads(q_norm_), k_norm = over_heads(k_norm_);
    if (!q_norm || !k_norm || v_norm_ || (rope_ && !rope_->inv_freq())) return false;
    const RopeSpec rope = spec_.rope.value_or(RopeSpec{});
    ops::rope_append(s, {.q = q,
                         .k = k,
                         .v = v,
                         .q_norm = *q_norm,
                         .k_norm = *k_norm,
                         .positions = b.positions,
                         .inv_freq = rope_ ? rope_->inv_freq() : ConstView{},
                         .style = rope.style,
                         .attention_factor = rope_ ? rope_->attention_factor() : 1,
                         .query_scale_beta = rope.query_scale_beta,
                         .query_scale_length = static_cast<float>(rope.original_length),
                         .seq = b.seq,
                         .cache = b.cache->layer(layer_)});
    return true;
}

void Attention::turn_queries(Stream& s, const Batch& b, View q) const {
    if (q_norm_) q_norm_->forward(s, q, q);
    if (rope_) rope_->forward(s, b, q, true);
}

void Attention::append(Stream& s, const Batch& b, View k, View v) const {
    if (k_norm_) k_norm_->forward(s, k, k);
    if (v_norm_) v_norm_->forward(s, v, v);
    if (rope_) rope_->forward(s, b, k, false);
    ops::kv_append(s, {.k = k, .v = v, .seq = b.seq, .cache = b.cache->layer(layer_)});
}

View Attention::attend(Stream& s, const Batch& b, View q, View k, View v) const {
    const int64_t tokens = q.shape[0], dim = spec_.head_dim, heads = spec_.heads,
                  kv = spec_.kv_heads;
    const bool own = spec_.kv_layer < 0;
    const View q_heads = reshape(q, {tokens, heads, dim});
    if (!own) {
        turn_queries(s, b, q_heads);
    } else {
        const View k_heads = reshape(k, {tokens, kv, dim}), v_heads = reshape(v, {tokens, kv, dim});
        if (!turn_and_append(s, b, q_heads, k_heads, v_heads)) {
            turn_queries(s, b, q_heads);
            append(s, b, k_heads, v_heads);
        }
    }
    const View y = s.workspace().take(DType::f32, {tokens, heads, dim});
    ops::attention(s, {.q = q_heads,
                       .cache = b.cache->layer(own ? layer_ : spec_.kv_layer),
                       .seq = b.seq,
                       .y = y,
                       .scale = spec_.scale,
                       .softcap = spec_.softcap,
                       .window = spec_.window,
                       .sinks = sinks_.view});
    return reshape(y, {tokens, heads * dim});
}

// Multiplies the attention's output y (tokens, heads, dim) by the gates that x makes.
void Attention::gate(Stream& s, ConstView x, View y) const {
    const Linear* linear = head_gate_ ? head_gate_.get() : gate_.linear.get();
    if (!linear) return;
    const auto scope = s.workspace().scope();
    const int64_t each = head_gate_ ? 1 : spec_.head_dim;
    const View g = s.workspace().take(DType::f32, {x.shape[0], spec_.heads * each});
    linear->forward(s, x, g);
    ops::head_gate(
        s, {.x = y, .gate = reshape(g, {x.shape[0], spec_.heads, each}), .act = spec_.gate_act});
}

void Attention::forward(Stream& s, const Batch& b, View x) const {
    const auto scope = s.workspace().scope();
    const auto [q, k, v] = take_qkv(s, spec_, x.shape[0]);
    const Shape heads = {x.shape[0], spec_.heads, spec_.head_dim};
    if (b.tap) b.tap->see(s, q_.spec.tag, x);
    View q_gate;
    if (spec_.interleaved_gate) {
        q_gate = s.workspace().take(DType::f32, q.shape);
        const View both = s.workspace().take(DType::f32, {x.shape[0], 2 * q.shape[1]});
        q_.linear->forward(s, x, both);
        ops::split_groups(s, {.x = both, .parts = {q, q_gate}, .groups = spec_.heads});
    } else {
        q_.linear->forward(s, x, q);
    }
    if (k_.linear) k_.linear->forward(s, x, k);
    if (v_.linear)
        v_.linear->forward(s, x, v);
    else if (k_.linear)
        s.copy(k, v);
    const View joined = attend(s, b, q, k, v);
    if (q_gate) ops::head_gate(s, {.x = reshape(joined, heads), .gate = reshape(q_gate, heads)});
    gate(s, x, reshape(joined, heads));
    if (b.tap) b.tap->see(s, o_.spec.tag, joined);
    o_.linear->forward(s, joined, x);
}

bool Attention::add_to(Stream& s, const Batch& b, const Norm* norm, View x) const {
    const bool plain = v_.linear && !spec_.interleaved_gate && spec_.gate.empty();
    if (b.tap || !plain || !holds_exl3(o_)) return false;
    const auto scope = s.workspace().scope();
    const auto [q, k, v] = take_qkv(s, spec_, x.shape[0]);
    Exl3FusedArgs stages{.x = x};
    if (norm && !norm->lead(stages)) return false;
    if (!run_fused(s, stages, {{q_, q}, {k_, k}, {v_, v}})) return false;
    return run_fused(s, {.x = attend(s, b, q, k, v), .add = true}, {{o_, x}});
}

void Attention::each_linear(const LinearVisitor& visit) {
    for (LinearSlot* slot : {&q_, &k_, &v_, &gate_, &o_})
        if (slot->linear) visit(*slot);
}

}  // namespace exl3
