#include "model/short_conv.h"

#include "ops/ops.h"

namespace exl3 {

ShortConv::ShortConv(Stream& s, const Checkpoint& c, const ShortConvSpec& spec, int hidden,
                     int layer)
    : layer_(layer), conv_(s, c, spec.key / "conv", {}, hidden, spec.kernel) {
    const auto linears = linears_of(spec, hidden);
    in_ = LinearSlot(s, c, linears[0]);
    out_ = LinearSlot(s, c, linears[1]);
}

void ShortConv::forward(Stream& s, const Batch& b, View x) const {
    Workspace& w = s.workspace();
    const auto scope = w.scope();
    const int64_t tokens = x.shape[0], hidden = x.shape[1];
    const View all = w.take(DType::f32, {tokens, 3 * hidden});
    if (b.tap) b.tap->see(s, in_.spec.tag, x);
    in_.linear->forward(s, x, all);
    const View y = w.take(DType::f32, x.shape);
    ops::causal_conv(s, {.x = slice_columns(all, 2 * hidden, hidden),
                         .gate_in = slice_columns(all, 0, hidden),
                         .gate_out = slice_columns(all, hidden, hidden),
                         .weight = conv_.weight.view,
                         .bias = conv_.bias.view,
                         .y = y,
                         .window = b.states->layer(layer_).window,
                         .seq = b.state_rows()});
    if (b.tap) b.tap->see(s, out_.spec.tag, y);
    out_.linear->forward(s, y, x);
}

void ShortConv::each_linear(const LinearVisitor& visit) {
    visit(in_);
    visit(out_);
}

}  // namespace exl3
