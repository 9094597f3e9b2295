#pragma once
#include "io/checkpoint.h"
#include "model/spec.h"
#include "train/matrix.h"

namespace exl3::train {

/// RMS norm over pieces of `dim` values with a weight per value.
class RmsNorm {
public:
    RmsNorm(const Checkpoint& c, const NormSpec& spec, int64_t dim);
    /// @param x  rows of a multiple of `dim` values
    Matrix forward(const Matrix& x) const;
    /// The gradient by x, given x and the gradient by the result.
    Matrix backward(const Matrix& x, const Matrix& dy) const;

private:
    double inverse_rms(const float* x) const;
    int64_t dim_;
    float eps_;
    std::vector<float> weight_;  // (dim), the bias of the weight added
};

}  // namespace exl3::train
