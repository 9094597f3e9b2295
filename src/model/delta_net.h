#pragma once
#include "model/conv_weights.h"
#include "model/module.h"
#include "model/norm.h"

namespace exl3 {

/// Gated delta net: x becomes out(norm(recurrence(conv(q, k, v))) * silu(z)).
class DeltaNet final : public Module {
public:
    /// @param layer  index of this layer in the state cache
    DeltaNet(Stream& s, const Checkpoint& c, const DeltaNetSpec& spec, int hidden, int layer);
    void forward(Stream& s, const Batch& b, View x) const override;
    void each_linear(const LinearVisitor& visit) override;

private:
    void project(Stream& s, const Batch& b, ConstView x, View qkv, View z) const;

    DeltaNetSpec spec_;
    int layer_;
    std::vector<LinearSlot> qkv_;  // one matrix (with z where spec_.qkvz names it), or q, k and v
    LinearSlot z_, out_;           // z_ is empty where qkv_ holds it
    Tensor ba_;                    // (2 * value_heads, hidden) f32: the rows of b, then those of a
    Tensor a_log_, step_bias_;
    ConvWeights conv_;
    Norm norm_;
};

}  // namespace exl3
