#pragma once
#include "model/module.h"
#include "model/norm.h"

namespace exl3 {

/// What PerLayerInputSpec says, for one block.
class PerLayerInput {
public:
    PerLayerInput(Stream& s, const Checkpoint& c, const PerLayerInputSpec& spec, int hidden);
    /// @param x  (tokens, hidden) f32, in place. Reads Batch::tokens and Batch::embedded.
    void forward(Stream& s, const Batch& b, View x) const;

private:
    std::unique_ptr<Linear> gate_, out_, projection_;
    Norm norm_, projection_norm_;
    Tensor table_;  // (vocab, dim), of this layer
    int dim_, hidden_;
};

}  // namespace exl3
