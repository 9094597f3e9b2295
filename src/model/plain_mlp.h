#pragma once
#include "model/module.h"

namespace exl3 {

/// x becomes down(act(up(x))).
class PlainMlp final : public Module {
public:
    PlainMlp(Stream& s, const Checkpoint& c, const PlainMlpSpec& spec, int hidden);
    void forward(Stream& s, const Batch& b, View x) const override;
    void each_linear(const LinearVisitor& visit) override;

private:
    PlainMlpSpec spec_;
    LinearSlot up_, down_;
    Xielu xielu_{};
};

}  // namespace exl3
