#pragma once
#include "model/conv_weights.h"
#include "model/module.h"
#include "model/norm.h"

namespace exl3 {

/// Mamba2: x becomes out(norm(recurrence(conv(x, B, C)) * silu(z))).
class Mamba2 final : public Module {
public:
    /// @param layer  index of this layer in the state cache
    Mamba2(Stream& s, const Checkpoint& c, const Mamba2Spec& spec, int hidden, int layer);
    void forward(Stream& s, const Batch& b, View x) const override;
    void each_linear(const LinearVisitor& visit) override;

private:
    Mamba2Spec spec_;
    int layer_;
    LinearSlot in_, out_;
    Tensor a_log_, step_bias_, skip_;
    ConvWeights conv_;
    Norm norm_;
};

}  // namespace exl3
