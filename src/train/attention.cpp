#include "train/attention.h"

#include <cmath>

#include "model/rope_table.h"

namespace exl3::train {
namespace {

// Where one head of one sequence stands.
struct Head {
    int64_t first, length, column, dim;
    View of(Matrix& m) const { return m.part(first, length, column, dim); }
    ConstView of(const Matrix& m) const { return m.part(first, length, column, dim); }
};

// Probabilities of the causal, perhaps windowed, softmax of q kᵀ, capped where the spec says so.
Matrix probabilities(Stream& s, const AttentionSpec& a, ConstView q, ConstView k) {
    Matrix p(q.shape[0], k.shape[0]);
    ops::gemm(s, {.a = q, .b = k, .c = p.view(), .transpose_b = true, .alpha = a.scale});
    for (int64_t i = 0; i < p.rows; ++i) {
        float* row = p.row(i);
        const int64_t begin = a.window > 0 ? std::max<int64_t>(0, i - a.window + 1) : 0;
        if (a.softcap > 0)
            for (int64_t j = begin; j <= i; ++j) row[j] = a.softcap * std::tanh(row[j] / a.softcap);
        float top = row[begin];
        for (int64_t j = begin; j <= i; ++j) top = std::max(top, row[j]);
        float sum = 0;
        for (int64_t j = 0; j < p.cols; ++j) {
            row[j] = j < begin || j > i ? 0 : std::exp(row[j] - top);
            sum += row[j];
        }
        for (int64_t j = begin; j <= i; ++j) row[j] /= sum;
    }
    return p;
}

// The gradient by the scores before the cap, from that by the probabilities, in place.
void scores_backward(Stream& s, const AttentionSpec& a, ConstView q, ConstView k, const Matrix& p,
                     Matrix& dp) {
    Matrix raw;
    if (a.softcap > 0) {
        raw = Matrix(p.rows, p.cols);
        ops::gemm(s, {.a = q, .b = k, .c = raw.view(), .transpose_b = true, .alpha = a.scale});
    }
    for (int64_t i = 0; i < p.rows; ++i) {
        const float* row = p.row(i);
        float* gradient = dp.row(i);
        float dot = 0;
        for (int64_t j = 0; j <= i; ++j) dot += row[j] * gradient[j];
        for (int64_t j = 0; j < p.cols; ++j) gradient[j] = row[j] * (gradient[j] - dot) * a.scale;
        if (a.softcap > 0)
            for (int64_t j = 0; j <= i; ++j) {
                const float t = std::tanh(raw.row(i)[j] / a.softcap);
                gradient[j] *= 1 - t * t;
            }
    }
}

template <typename Fn>
void each_head(const AttentionSpec& a, const Sequences& q, Fn&& fn) {
    for (int64_t i = 0; i < q.count; ++i)
        for (int64_t h = 0; h < a.heads; ++h) {
            const int64_t kv = h / (a.heads / a.kv_heads);
            fn(Head{i * q.length, q.length, h * a.head_dim, a.head_dim},
               Head{i * q.length, q.length, kv * a.head_dim, a.head_dim});
        }
}

}  // namespace

Matrix apply(Stream& s, const LinearWeight& w, const Matrix& x) {
    Matrix y = times_transposed(s, x, w.weight);
    if (!w.bias.empty())
        for (int64_t i = 0; i < y.rows; ++i)
            for (int64_t j = 0; j < y.cols; ++j) y.row(i)[j] += w.bias[static_cast<size_t>(j)];
    return y;
}

Matrix apply_backward(Stream& s, const LinearWeight& w, const Matrix& x, const Matrix& y,
                      const Matrix& dy, GradientTap& tap) {
    Matrix dx = times(s, dy, w.weight);
    tap.linear(s, {w, x, y, dx, dy});
    return dx;
}

Attention::Attention(const Checkpoint& c, const AttentionSpec& spec, int hidden,
                     const WeightSource& source)
    : spec_(spec) {
    const auto linears = linears_of(spec, hidden);
    q_ = source(linears[0]);
    k_ = source(linears[1]);
    v_ = source(linears[2]);
    o_ = source(linears[3]);
    if (spec.q_norm) q_norm_.emplace(c, *spec.q_norm, spec.head_dim);
    if (spec.k_norm) k_norm_.emplace(c, *spec.k_norm, spec.head_dim);
    if (spec_.scale == 0) spec_.scale = 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
    if (spec.rope) {
        const RopeTable table = rope_table(*spec.rope, 0);
        inv_freq_ = table.inv_freq;
        rope_factor_ = table.attention_factor;
    }
}

// The backward rotation is the transposed one.
void Attention::rotate(const Sequences& q, Matrix& heads, bool back) const {
    const auto half = static_cast<int64_t>(inv_freq_.size());
    if (half == 0) return;
    const bool neox = spec_.rope->style == RopeStyle::neox;
    for (int64_t t = 0; t < q.length; ++t)
        for (int64_t i = 0; i < half; ++i) {
            const double angle =
                static_cast<double>(t) * static_cast<double>(inv_freq_[static_cast<size_t>(i)]);
            const auto c = static_cast<float>(std::cos(angle)) * rope_factor_;
            const auto sine = static_cast<float>(back ? -std::sin(angle) : std::sin(angle));
            const float sn = sine * rope_factor_;
            const int64_t first = neox ? i : 2 * i, second = neox ? i + half : 2 * i + 1;
            for (int64_t sequence = 0; sequence < q.count; ++sequence) {
                float* row = heads.row(sequence * q.length + t);
                for (int64_t h = 0; h < heads.cols; h += spec_.head_dim) {
                    const float a = row[h + first], b = row[h + second];
                    row[h + first] = a * c - b * sn;
                    row[h + second] = b * c + a * sn;
                }
            }
        }
}

void Attention::mix(Stream& s, const Sequences& q, Tape& tape) const {
    tape.joined = Matrix(q.tokens(), int64_t{spec_.heads} * spec_.head_dim);
    each_head(spec_, q, [&](const Head& head, const Head& kv) {
        const Matrix p = probabilities(s, spec_, head.of(tape.q), kv.of(tape.k));
        ops::gemm(s, {.a = p.view(), .b = kv.of(tape.v), .c = head.of(tape.joined)});
    });
}

Matrix Attention::forward(Stream& s, const Sequences& q, Matrix x, Tape& tape) const {
    tape.x = std::move(x);
    tape.q_raw = apply(s, q_, tape.x);
    tape.k_raw = apply(s, k_, tape.x);
    tape.v = apply(s, v_, tape.x);
    tape.q = q_norm_ ? q_norm_->forward(tape.q_raw) : tape.q_raw;
    tape.k = k_norm_ ? k_norm_->forward(tape.k_raw) : tape.k_raw;
    rotate(q, tape.q, false);
    rotate(q, tape.k, false);
    mix(s, q, tape);
    return tape.y = apply(s, o_, tape.joined);
}

Matrix Attention::backward(Stream& s, const Sequences& q, const Tape& tape, const Matrix& dy,
                           GradientTap& tap) const {
    const Matrix d_joined = apply_backward(s, o_, tape.joined, tape.y, dy, tap);
    Matrix dq(tape.q.rows, tape.q.cols), dk(tape.k.rows, tape.k.cols), dv(tape.v.rows, tape.v.cols);
    each_head(spec_, q, [&](const Head& head, const Head& kv) {
        const ConstView queries = head.of(tape.q), keys = kv.of(tape.k);
        const Matrix p = probabilities(s, spec_, queries, keys);
        Matrix dp(p.rows, p.cols);
        const ConstView dh = head.of(d_joined);
        ops::gemm(s, {.a = dh, .b = kv.of(tape.v), .c = dp.view(), .transpose_b = true});
        ops::gemm(s, {.a = p.view(), .b = dh, .c = kv.of(dv), .transpose_a = true, .beta = 1});
        scores_backward(s, spec_, queries, keys, p, dp);
        ops::gemm(s, {.a = dp.view(), .b = keys, .c = head.of(dq)});
        ops::gemm(s,
                  {.a = dp.view(), .b = queries, .c = kv.of(dk), .transpose_a = true, .beta = 1});
    });
    rotate(q, dq, true);
    rotate(q, dk, true);
    if (q_norm_) dq = q_norm_->backward(tape.q_raw, dq);
    if (k_norm_) dk = k_norm_->backward(tape.k_raw, dk);
    Matrix dx = apply_backward(s, q_, tape.x, tape.q_raw, dq, tap);
    add(apply_backward(s, k_, tape.x, tape.k_raw, dk, tap), dx);
    add(apply_backward(s, v_, tape.x, tape.v, dv, tap), dx);
    return dx;
}

void Attention::each_linear(const std::function<void(LinearWeight&)>& visit) {
    for (LinearWeight* w : {&q_, &k_, &v_, &o_}) visit(*w);
}

}  // namespace exl3::train
