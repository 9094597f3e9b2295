#include "model/gated_mlp.h"

#include "model/norm.h"
#include "ops/ops.h"

namespace exl3 {

GatedMlp::GatedMlp(Stream& s, const Checkpoint& c, const GatedMlpSpec& spec, int hidden)
    : spec_(spec) {
    const auto linears = linears_of(spec, hidden);
    gate_ = LinearSlot(s, c, linears[0]);
    up_ = LinearSlot(s, c, linears[1]);
    down_ = LinearSlot(s, c, linears[2]);
}

void GatedMlp::forward(Stream& s, const Batch& b, View x) const {
    const auto scope = s.workspace().scope();
    const View gate = s.workspace().take(DType::f32, {x.shape[0], spec_.inner});
    const View up = s.workspace().take(DType::f32, {x.shape[0], spec_.inner});
    if (b.tap && spec_.shared_input.empty()) b.tap->see(s, gate_.spec.tag, x);
    gate_.linear->forward(s, x, gate);
    up_.linear->forward(s, x, up);
    ops::gated_act(s, {.gate = gate,
                       .up = up,
                       .y = gate,
                       .act = spec_.act,
                       .limit = spec_.limit,
                       .clamp = spec_.clamp});
    if (b.tap) b.tap->see(s, down_.spec.tag, gate);
    down_.linear->forward(s, gate, x);
}

bool GatedMlp::add_to(Stream& s, const Batch& b, const Norm* norm, View x) const {
    // Activations with numbers of their own, or a limit, have no place in the fused call.
    const bool plain = spec_.limit == 0 && spec_.act != Act::xielu && spec_.act != Act::oai;
    if (b.tap || !plain || !holds_exl3(down_)) return false;
    const auto scope = s.workspace().scope();
    const View gate = s.workspace().take(DType::f32, {x.shape[0], spec_.inner});
    const View up = s.workspace().take(DType::f32, {x.shape[0], spec_.inner});
    Exl3FusedArgs stages{.x = x};
    if (norm && !norm->lead(stages)) return false;
    if (!run_fused(s, stages, {{gate_, gate}, {up_, up}})) return false;
    return run_fused(s, {.x = gate, .gated = true, .up = up, .act = spec_.act, .add = true},
                     {{down_, x}});
}

void GatedMlp::each_linear(const LinearVisitor& visit) {
    for (LinearSlot* slot : {&gate_, &up_, &down_}) visit(*slot);
}

}  // namespace exl3
