#pragma once
#include "model/linear.h"

namespace exl3 {

/// RMS normalisation with the weight that a NormSpec names.
class Norm {
public:
    Norm(Stream& s, const Checkpoint& c, const NormSpec& spec, int dim);
    /// Normalises each row of x (rows, dim) into y; y may alias x.
    void forward(Stream& s, ConstView x, View y) const;

private:
    Tensor weight_;
    float eps_, weight_bias_;
};

}  // namespace exl3
