#pragma once
#include <span>

#include "train/block.h"

namespace exl3::train {

/// Turns logits (rows, vocab) into the gradient of a loss by them, in place.
/// @param first  number of the first row among the tokens of the batch
using LossGradient = std::function<void(int64_t first, Matrix& logits)>;

/// Token ids to the residual stream, and the residual stream to logits.
class Ends {
public:
    Ends(const Checkpoint& c, const ModelSpec& spec, const WeightSource& source);
    Matrix embed(std::span<const int32_t> ids) const;
    /// What the head reads: the normed hidden states.
    Matrix normed(const Matrix& x) const { return norm_.forward(x); }
    /// @param normed  (rows, hidden)
    Matrix logits(Stream& s, const Matrix& normed) const;
    /// The gradient by the last residual x, rows a few at a time so that logits stay small.
    Matrix backward(Stream& s, const Matrix& x, const LossGradient& loss, GradientTap& tap) const;
    LinearWeight& head() { return head_; }

private:
    Matrix table_;
    float embed_scale_, softcap_, scale_;
    RmsNorm norm_;
    LinearWeight head_;
};

/// A whole dense decoder in f32 host memory with its backward pass.
class Decoder {
public:
    Decoder(const Checkpoint& c, const ModelSpec& spec, const WeightSource& source);
    /// The last residual of sequences of token ids, one after the other.
    Matrix forward(Stream& s, const Sequences& q, std::span<const int32_t> ids);
    /// The backward pass of the last forward pass.
    void backward(Stream& s, const Sequences& q, const Matrix& x, const LossGradient& loss,
                  GradientTap& tap) const;
    Ends& ends() { return ends_; }
    void each_linear(const std::function<void(LinearWeight&)>& visit);

private:
    Ends ends_;
    std::vector<Block> blocks_;
    std::vector<Block::Tape> tapes_;
};

/// Why a model cannot be trained here, or empty.
std::string why_not(const ModelSpec& spec);

/// Plain weights of a checkpoint, f32.
WeightSource plain_weights(const Checkpoint& c);

}  // namespace exl3::train
