#include "train/mlp.h"

#include <cmath>
#include <numbers>

namespace exl3::train {
namespace {

// An activation and its slope.
struct Point {
    float value, slope;
};

Point at(Act act, float x) {
    switch (act) {
        case Act::silu: {
            const float sigmoid = 1 / (1 + std::exp(-x));
            return {x * sigmoid, sigmoid * (1 + x * (1 - sigmoid))};
        }
        case Act::gelu: {
            const float normal = 0.5f * (1 + std::erf(x / std::numbers::sqrt2_v<float>));
            const float density = std::exp(-0.5f * x * x) * std::numbers::inv_sqrtpi_v<float> /
                                  std::numbers::sqrt2_v<float>;
            return {x * normal, normal + x * density};
        }
        case Act::gelu_tanh: {
            const float c = std::sqrt(2 / std::numbers::pi_v<float>);
            const float t = std::tanh(c * (x + 0.044715f * x * x * x));
            return {0.5f * x * (1 + t),
                    0.5f * (1 + t) + 0.5f * x * (1 - t * t) * c * (1 + 3 * 0.044715f * x * x)};
        }
        case Act::relu2: {
            const float r = std::max(x, 0.0f);
            return {r * r, 2 * r};
        }
        case Act::xielu:
        case Act::oai: break;
    }
    EXL3_CHECK(false, "an activation that why_not() refuses");
    return {};
}

}  // namespace

Mlp::Mlp(const MlpSpec& spec, int hidden, const WeightSource& source) {
    std::vector<LinearSpec> linears;
    if (const auto* gated = std::get_if<GatedMlpSpec>(&spec)) {
        linears = linears_of(*gated, hidden);
        act_ = gated->act;
        gated_ = true;
        gate_ = source(linears.front());
    } else {
        const auto& plain = std::get<PlainMlpSpec>(spec);
        linears = linears_of(plain, hidden);
        act_ = plain.act;
    }
    up_ = source(linears[gated_ ? 1 : 0]);
    down_ = source(linears.back());
}

Matrix Mlp::forward(Stream& s, const Sequences&, Matrix x, Tape& tape) const {
    tape.x = std::move(x);
    if (gated_) tape.gate = apply(s, gate_, tape.x);
    tape.up = apply(s, up_, tape.x);
    tape.inner = Matrix(tape.up.rows, tape.up.cols);
    for (size_t i = 0; i < tape.inner.data.size(); ++i)
        tape.inner.data[i] = gated_ ? at(act_, tape.gate.data[i]).value * tape.up.data[i]
                                    : at(act_, tape.up.data[i]).value;
    return tape.y = apply(s, down_, tape.inner);
}

Matrix Mlp::backward(Stream& s, const Sequences&, const Tape& tape, const Matrix& dy,
                     GradientTap& tap) const {
    Matrix d_up = apply_backward(s, down_, tape.inner, tape.y, dy, tap);
    Matrix d_gate;
    if (gated_) d_gate = Matrix(d_up.rows, d_up.cols);
    for (size_t i = 0; i < d_up.data.size(); ++i) {
        const float d = d_up.data[i];
        if (gated_) {
            const Point p = at(act_, tape.gate.data[i]);
            d_gate.data[i] = d * tape.up.data[i] * p.slope;
            d_up.data[i] = d * p.value;
        } else {
            d_up.data[i] = d * at(act_, tape.up.data[i]).slope;
        }
    }
    Matrix dx = apply_backward(s, up_, tape.x, tape.up, d_up, tap);
    if (gated_) add(apply_backward(s, gate_, tape.x, tape.gate, d_gate, tap), dx);
    return dx;
}

void Mlp::each_linear(const std::function<void(LinearWeight&)>& visit) {
    if (gated_) visit(gate_);
    visit(up_);
    visit(down_);
}

}  // namespace exl3::train
