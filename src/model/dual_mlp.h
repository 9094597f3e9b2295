#pragma once
#include "model/gated_mlp.h"
#include "model/moe.h"
#include "model/norm.h"

namespace exl3 {

/// A dense MLP and experts side by side (Gemma 4): x, the residual stream, becomes
/// post(dense(norm x)) + post(experts(norm x)), the experts chosen by a norm of x of their own.
class DualMlp final : public Module {
public:
    DualMlp(Stream& s, const Checkpoint& c, const DualMlpSpec& spec, int hidden);
    void forward(Stream& s, const Batch& b, View x) const override;
    void each_linear(const LinearVisitor& visit) override;

private:
    GatedMlp dense_;
    Moe moe_;
    Norm dense_norm_, dense_post_, moe_norm_, moe_post_;
    Tensor router_weight_;  // scale / sqrt(hidden)
    float eps_;
};

}  // namespace exl3
