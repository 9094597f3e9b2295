#pragma once
#include <functional>
#include <optional>

#include "train/gradient.h"
#include "train/norm.h"

namespace exl3::train {

/// Reads a matrix of the decoder.
using WeightSource = std::function<LinearWeight(const LinearSpec&)>;

/// Causal softmax attention with its projections.
class Attention {
public:
    /// What the backward pass needs of the forward pass.
    struct Tape {
        Matrix x, q_raw, k_raw, v, q, k;  // q, k: normed and rotated
        Matrix joined, y;                 // heads side by side; after o_proj
    };

    Attention(const Checkpoint& c, const AttentionSpec& spec, int hidden,
              const WeightSource& source);
    /// @return (tokens, hidden)
    Matrix forward(Stream& s, const Sequences& q, Matrix x, Tape& tape) const;
    /// The gradient by x; the tap sees every projection.
    Matrix backward(Stream& s, const Sequences& q, const Tape& tape, const Matrix& dy,
                    GradientTap& tap) const;
    void each_linear(const std::function<void(LinearWeight&)>& visit);

private:
    void rotate(const Sequences& q, Matrix& heads, bool back) const;
    void mix(Stream& s, const Sequences& q, Tape& tape) const;

    AttentionSpec spec_;
    LinearWeight q_, k_, v_, o_;
    std::optional<RmsNorm> q_norm_, k_norm_;
    std::vector<float> inv_freq_;
    float rope_factor_ = 1;
};

/// y = x Wᵀ + b.
Matrix apply(Stream& s, const LinearWeight& w, const Matrix& x);
/// Shows a matrix to the tap and returns its gradient by x.
Matrix apply_backward(Stream& s, const LinearWeight& w, const Matrix& x, const Matrix& y,
                      const Matrix& dy, GradientTap& tap);

}  // namespace exl3::train
