#pragma once
#include "model/linear.h"

namespace exl3 {

/// The first step of a model: token ids become rows of the embedding table, scaled.
class Embedding {
public:
    Embedding(Stream& s, const Checkpoint& c, const ModelSpec& spec);
    /// @param tokens  (tokens) i32  @param x  (tokens, hidden) f32, overwritten
    void forward(Stream& s, ConstView tokens, View x) const;

private:
    Tensor table_;
    float scale_;
};

}  // namespace exl3
