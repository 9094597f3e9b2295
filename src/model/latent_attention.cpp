#include "model/latent_attention.h"

#include "ops/ops.h"

namespace exl3 {
namespace {

/// Channels [begin, begin + count) of every row.
View channels(View v, int64_t begin, int64_t count) {
    v.data = v.as<float>() + begin;
    v.shape.dim[static_cast<size_t>(v.shape.rank - 1)] = count;
    return v;
}

// On the device as f16 or bf16 where the file had that, so that nothing is lost.
Tensor upload_as(Stream& s, const std::vector<float>& w, DType dtype, Shape shape) {
    if (dtype != DType::f16 && dtype != DType::bf16) dtype = DType::f32;
    Tensor t = s.device().make_tensor(dtype, shape);
    if (dtype == DType::f32) {
        s.copy(dense(w.data(), dtype, shape), t.view);
        return t;
    }
    std::vector<uint16_t> half(w.size());
    for (size_t i = 0; i < w.size(); ++i)
        half[i] = dtype == DType::f16 ? to_f16(w[i]).bits : to_bf16(w[i]).bits;
    s.copy(dense(half.data(), dtype, shape), t.view);
    s.synchronize();  // `half` goes away here
    return t;
}

}  // namespace

LatentAttention::LatentAttention(Stream& s, const Checkpoint& c, const LatentAttentionSpec& spec,
                                 int hidden, int layer)
    : spec_(spec), layer_(layer), rope_(s, spec.rope) {
    const auto linears = linears_of(spec, hidden);
    const bool ranked = spec.query_rank > 0;
    (ranked ? q_a_ : q_) = LinearSlot(s, c, linears[0]);
    kv_a_ = LinearSlot(s, c, linears[1]);
    if (ranked) q_b_ = LinearSlot(s, c, linears[2]);
    o_ = LinearSlot(s, c, linears.back());
    const auto norm = [&](std::string_view name) {
        return NormSpec{.key = spec.key / name, .eps = spec.eps};
    };
    if (ranked) q_norm_.emplace(s, c, norm("q_a_layernorm"), spec.query_rank);
    kv_norm_.emplace(s, c, norm("kv_a_layernorm"), spec.rank);
    load_key_value_matrices(s, c);
}

// kv_b_proj has, head after head, nope_dim rows that make keys and value_dim rows that make values.
void LatentAttention::load_key_value_matrices(Stream& s, const Checkpoint& c) {
    const int64_t heads = spec_.heads, rank = spec_.rank, nope = spec_.nope_dim,
                  value = spec_.value_dim;
    const LinearSpec kv_b{.key = spec_.key / "kv_b_proj",
                          .in = spec_.rank,
                          .out = spec_.heads * (spec_.nope_dim + spec_.value_dim)};
    const std::vector<float> w = read_dense_weight(c, kv_b);
    const DType dtype = c.find((kv_b.key / "weight").str()).info->dtype;
    std::vector<float> into(static_cast<size_t>(heads * rank * nope)),
        from(static_cast<size_t>(heads * value * rank));
    for (int64_t h = 0; h < heads; ++h) {
        const float* keys = w.data() + h * (nope + value) * rank;
        for (int64_t r = 0; r < rank; ++r)
            for (int64_t i = 0; i < nope; ++i)
                into[static_cast<size_t>((h * rank + r) * nope + i)] = keys[i * rank + r];
        std::copy_n(keys + nope * rank, value * rank, from.data() + h * value * rank);
    }
    into_latent_ = upload_as(s, into, dtype, {heads, rank, nope});
    from_latent_ = upload_as(s, from, dtype, {heads, value, rank});
}

// (tokens, heads, rope_dim + rank): the rotated part, then the rest in latent space.
View LatentAttention::queries(Stream& s, const Batch& b, ConstView x) const {
    Workspace& w = s.workspace();
    const int64_t tokens = x.shape[0], heads = spec_.heads, nope = spec_.nope_dim,
                  rope = spec_.rope_dim, rank = spec_.rank;
    const View latent = w.take(DType::f32, {tokens, heads, rope + rank});
    const auto scope = w.scope();
    const View q = w.take(DType::f32, {tokens, heads * (nope + rope)});
    if (q_.linear) {
        q_.linear->forward(s, x, q);
    } else {
        const View narrow = w.take(DType::f32, {tokens, spec_.query_rank});
        q_a_.linear->forward(s, x, narrow);
        q_norm_->forward(s, narrow, narrow);
        if (b.tap) b.tap->see(s, q_b_.spec.tag, narrow);
        q_b_.linear->forward(s, narrow, q);
    }
    const View by_head = reshape(q, {tokens, heads, nope + rope});
    s.copy(channels(by_head, nope, rope), channels(latent, 0, rope));
    ops::head_linear(s, {.x = channels(by_head, 0, nope),
                         .weight = into_latent_.view,
                         .y = channels(latent, rope, rank)});
    rope_.forward(s, b, latent, true);
    return latent;
}

void LatentAttention::append(Stream& s, const Batch& b, ConstView x) const {
    Workspace& w = s.workspace();
    const auto scope = w.scope();
    const int64_t tokens = x.shape[0], rope = spec_.rope_dim, rank = spec_.rank;
    const View both = w.take(DType::f32, {tokens, rank + rope});
    kv_a_.linear->forward(s, x, both);
    const View row = w.take(DType::f32, {tokens, rope + rank});
    kv_norm_->forward(s, channels(both, 0, rank), channels(row, rope, rank));
    s.copy(channels(both, rank, rope), channels(row, 0, rope));
    const View heads = reshape(row, {tokens, 1, rope + rank});
    rope_.forward(s, b, heads, false);
    ops::kv_append(s, {.k = heads, .v = heads, .seq = b.seq, .cache = b.cache->layer(layer_)});
}

void LatentAttention::forward(Stream& s, const Batch& b, View x) const {
    Workspace& w = s.workspace();
    const auto scope = w.scope();
    const int64_t tokens = x.shape[0], heads = spec_.heads;
    if (b.tap) b.tap->see(s, kv_a_.spec.tag, x);
    append(s, b, x);
    const View q = queries(s, b, x);
    const View mixed = w.take(DType::f32, q.shape);
    ops::attention(
        s,
        {.q = q, .cache = b.cache->layer(layer_), .seq = b.seq, .y = mixed, .scale = spec_.scale});
    const View y = w.take(DType::f32, {tokens, heads, spec_.value_dim});
    ops::head_linear(
        s, {.x = channels(mixed, spec_.rope_dim, spec_.rank), .weight = from_latent_.view, .y = y});
    const View joined = reshape(y, {tokens, heads * spec_.value_dim});
    if (b.tap) b.tap->see(s, o_.spec.tag, joined);
    o_.linear->forward(s, joined, x);
}

void LatentAttention::each_linear(const LinearVisitor& visit) {
    for (LinearSlot* slot : {&q_, &q_a_, &kv_a_, &q_b_, &o_})
        if (slot->linear) visit(*slot);
}

}  // namespace exl3
