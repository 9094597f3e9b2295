#pragma once
#include "train/attention.h"

namespace exl3::train {

/// down(act(gate(x)) * up(x)), or down(act(up(x))) without a gate.
class Mlp {
public:
    struct Tape {
        Matrix x, gate, up, inner, y;  // inner: what down reads
    };
    Mlp(const MlpSpec& spec, int hidden, const WeightSource& source);
    Matrix forward(Stream& s, const Sequences& q, Matrix x, Tape& tape) const;
    Matrix backward(Stream& s, const Sequences& q, const Tape& tape, const Matrix& dy,
                    GradientTap& tap) const;
    void each_linear(const std::function<void(LinearWeight&)>& visit);

private:
    Act act_ = Act::silu;
    bool gated_ = false;
    LinearWeight gate_, up_, down_;
};

}  // namespace exl3::train
