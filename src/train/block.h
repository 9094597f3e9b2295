#pragma once
#include <optional>
#include <string>

#include "train/mlp.h"

namespace exl3::train {

/// One decoder layer of the dense kind with its backward pass (model/block.h).
class Block {
public:
    struct HalfTape {
        Matrix from, body;  // the residual before, the body's result before its norm
    };
    struct Tape {
        HalfTape mixer, mlp;
        Attention::Tape attention;
        Mlp::Tape inner;
    };

    Block(const Checkpoint& c, const BlockSpec& spec, int hidden, const WeightSource& source);
    /// Advances the residual stream x (tokens, hidden) in place.
    void forward(Stream& s, const Sequences& q, Matrix& x, Tape& tape) const;
    /// Turns the gradient by the block's result into that by its input, in place.
    void backward(Stream& s, const Sequences& q, const Tape& tape, Matrix& dx,
                  GradientTap& tap) const;
    void each_linear(const std::function<void(LinearWeight&)>& visit);

private:
    struct Norms {
        std::optional<RmsNorm> before, after;
    };
    Norms mixer_norms_, mlp_norms_;
    Attention attention_;
    Mlp mlp_;
};

/// Why a block cannot be trained here, or empty: only dense blocks of softmax attention and RMS
/// norms have a backward pass.
std::string why_not(const BlockSpec& spec);

}  // namespace exl3::train
