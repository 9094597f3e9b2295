#pragma once
#include "model/conv_weights.h"
#include "model/module.h"

namespace exl3 {

/// The short convolution of LFM2: x becomes out(C * conv(B * u)) with B, C, u = in(x).
class ShortConv final : public Module {
public:
    /// @param layer  index of this layer in the state cache
    ShortConv(Stream& s, const Checkpoint& c, const ShortConvSpec& spec, int hidden, int layer);
    void forward(Stream& s, const Batch& b, View x) const override;
    void each_linear(const LinearVisitor& visit) override;

private:
    int layer_;
    LinearSlot in_, out_;
    ConvWeights conv_;
};

}  // namespace exl3
