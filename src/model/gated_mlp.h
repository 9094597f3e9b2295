#pragma once
#include "model/module.h"

namespace exl3 {

/// x becomes down(act(gate(x)) * up(x)).
class GatedMlp final : public Module {
public:
    GatedMlp(Stream& s, const Checkpoint& c, const GatedMlpSpec& spec, int hidden);
    void forward(Stream& s, const Batch& b, View x) const override;
    bool add_to(Stream& s, const Batch& b, const Norm* norm, View x) const override;
    void each_linear(const LinearVisitor& visit) override;

private:
    GatedMlpSpec spec_;
    LinearSlot gate_, up_, down_;
};

}  // namespace exl3
