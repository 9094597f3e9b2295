#include "model/plain_mlp.h"

#include "ops/ops.h"

namespace exl3 {

PlainMlp::PlainMlp(Stream& s, const Checkpoint& c, const PlainMlpSpec& spec, int hidden)
    : spec_(spec) {
    const auto linears = linears_of(spec, hidden);
    up_ = LinearSlot(s, c, linears[0]);
    down_ = LinearSlot(s, c, linears[1]);
}

void PlainMlp::forward(Stream& s, const Batch& b, View x) const {
    const auto scope = s.workspace().scope();
    const View up = s.workspace().take(DType::f32, {x.shape[0], spec_.inner});
    if (b.tap && spec_.shared_input.empty()) b.tap->see(s, up_.spec.tag, x);
    up_.linear->forward(s, x, up);
    ops::gated_act(s, {.gate = up, .y = up, .act = spec_.act});
    if (b.tap) b.tap->see(s, down_.spec.tag, up);
    down_.linear->forward(s, up, x);
}

void PlainMlp::each_linear(const LinearVisitor& visit) {
    visit(up_);
    visit(down_);
}

}  // namespace exl3
