#pragma once
#include <vector>

#include "model/spec.h"
#include "train/matrix.h"

namespace exl3::train {

/// A matrix of the decoder as the forward pass uses it: y = x weightᵀ + bias.
struct LinearWeight {
    LinearSpec spec;
    Matrix weight;            ///< (out, in)
    std::vector<float> bias;  ///< (out) or empty
};

/// What one backward pass found out about one matrix.
struct LinearGradient {
    const LinearWeight& linear;
    const Matrix& x;   ///< (tokens, in)
    const Matrix& y;   ///< (tokens, out), bias included
    const Matrix& dx;  ///< gradient of the loss by x, as far as it flows through this matrix
    const Matrix& dy;  ///< gradient of the loss by y
};

/// Sees the gradients of a backward pass, matrix by matrix. Which parameters there are, and
/// whether they change or are only measured, is the tap's business.
struct GradientTap {
    virtual ~GradientTap() = default;
    virtual void linear(Stream& s, const LinearGradient& g) = 0;
};

/// Sequences of equal length, one after the other; each starts at position 0.
struct Sequences {
    int64_t count = 0, length = 0;
    int64_t tokens() const { return count * length; }
};

}  // namespace exl3::train
