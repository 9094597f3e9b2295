#pragma once
#include <string>
#include <vector>

#include "model/linear.h"

namespace exl3 {

/// The weights of a depthwise convolution as ops::causal_conv takes them.
struct ConvWeights {
    ConvWeights() = default;
    /// Reads `key`.weight (channels, 1, kernel) and `key`.bias, or, where that does not exist, the
    /// tensors under `parts`, whose channels follow each other.
    /// Throws Error{invalid_file} if they do not add up to `channels` channels of `kernel` values.
    ConvWeights(Stream& s, const Checkpoint& c, const Key& key, const std::vector<Key>& parts,
                int channels, int kernel);
    Tensor weight;  ///< (kernel, channels) f32
    Tensor bias;    ///< (channels) f32, or empty
};

/// Values uploaded as an f32 tensor of that shape.
Tensor upload_f32(Stream& s, const std::vector<float>& values, Shape shape);

/// A tensor of `n` numbers of any float type as f32. Throws Error{invalid_file} for another size.
Tensor load_vector(Stream& s, const Checkpoint& c, const std::string& name, int64_t n);

}  // namespace exl3
