#include "train/decoder.h"

#include <cmath>

#include "io/convert.h"
#include "model/head.h"

namespace exl3::train {
namespace {

constexpr int64_t kHeadRows = 256;  // logits of this many tokens are in memory at once

Matrix rows_of(const Matrix& m, int64_t begin, int64_t count) {
    Matrix part(count, m.cols);
    std::copy(m.row(begin), m.row(begin) + count * m.cols, part.data.data());
    return part;
}

}  // namespace

std::string why_not(const ModelSpec& spec) {
    if (spec.final_norm.layer_norm) return "LayerNorm";
    for (const BlockSpec& block : spec.blocks)
        if (std::string why = why_not(block); !why.empty()) return why;
    return "";
}

WeightSource plain_weights(const Checkpoint& c) {
    return [&c](const LinearSpec& spec) {
        LinearWeight w{.spec = spec, .weight = {}, .bias = read_bias(c, spec)};
        w.weight.rows = spec.out;
        w.weight.cols = spec.in;
        w.weight.data = read_dense_weight(c, spec);
        return w;
    };
}

Ends::Ends(const Checkpoint& c, const ModelSpec& spec, const WeightSource& source)
    : embed_scale_(spec.embed_scale),
      softcap_(spec.logit_softcap),
      scale_(spec.logit_scale),
      norm_(c, spec.final_norm, spec.hidden),
      head_(source(resolve_head(c, spec))) {
    table_.rows = spec.vocab;
    table_.cols = spec.hidden;
    table_.data = read_f32(c, (spec.embed_key / "weight").str());
    EXL3_CHECK(static_cast<int64_t>(table_.data.size()) == table_.rows * table_.cols);
}

Matrix Ends::embed(std::span<const int32_t> ids) const {
    Matrix x(static_cast<int64_t>(ids.size()), table_.cols);
    for (int64_t t = 0; t < x.rows; ++t) {
        const float* from = table_.row(ids[static_cast<size_t>(t)]);
        for (int64_t i = 0; i < x.cols; ++i) x.row(t)[i] = from[i] * embed_scale_;
    }
    return x;
}

Matrix Ends::logits(Stream& s, const Matrix& normed) const {
    Matrix y = apply(s, head_, normed);
    for (float& v : y.data) {
        if (softcap_ > 0) v = softcap_ * std::tanh(v / softcap_);
        v *= scale_;
    }
    return y;
}

Matrix Ends::backward(Stream& s, const Matrix& x, const LossGradient& loss,
                      GradientTap& tap) const {
    Matrix dx(x.rows, x.cols);
    for (int64_t begin = 0; begin < x.rows; begin += kHeadRows) {
        const Matrix from = rows_of(x, begin, std::min(kHeadRows, x.rows - begin));
        const Matrix in = norm_.forward(from);
        const Matrix raw = apply(s, head_, in);
        Matrix d = raw;
        for (float& v : d.data) {
            if (softcap_ > 0) v = softcap_ * std::tanh(v / softcap_);
            v *= scale_;
        }
        loss(begin, d);
        for (size_t i = 0; i < d.data.size(); ++i) {
            d.data[i] *= scale_;
            if (softcap_ > 0) {
                const float t = std::tanh(raw.data[i] / softcap_);
                d.data[i] *= 1 - t * t;
            }
        }
        const Matrix d_in = apply_backward(s, head_, in, raw, d, tap);
        const Matrix part = norm_.backward(from, d_in);
        std::copy(part.data.begin(), part.data.end(), dx.row(begin));
    }
    return dx;
}

Decoder::Decoder(const Checkpoint& c, const ModelSpec& spec, const WeightSource& source)
    : ends_(c, spec, source) {
    for (const BlockSpec& block : spec.blocks) blocks_.emplace_back(c, block, spec.hidden, source);
    tapes_.resize(blocks_.size());
}

Matrix Decoder::forward(Stream& s, const Sequences& q, std::span<const int32_t> ids) {
    Matrix x = ends_.embed(ids);
    for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i].forward(s, q, x, tapes_[i]);
    return x;
}

void Decoder::backward(Stream& s, const Sequences& q, const Matrix& x, const LossGradient& loss,
                       GradientTap& tap) const {
    Matrix dx = ends_.backward(s, x, loss, tap);
    for (size_t i = blocks_.size(); i-- > 0;) blocks_[i].backward(s, q, tapes_[i], dx, tap);
}

void Decoder::each_linear(const std::function<void(LinearWeight&)>& visit) {
    for (Block& block : blocks_) block.each_linear(visit);
    visit(ends_.head());
}

}  // namespace exl3::train
