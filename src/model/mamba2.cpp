#include "model/mamba2.h"

#include "ops/ops.h"

namespace exl3 {

Mamba2::Mamba2(Stream& s, const Checkpoint& c, const Mamba2Spec& spec, int hidden, int layer)
    : spec_(spec),
      layer_(layer),
      a_log_(load_vector(s, c, spec.key / "A_log", spec.heads)),
      step_bias_(load_vector(s, c, spec.key / "dt_bias", spec.heads)),
      skip_(load_vector(s, c, spec.key / "D", spec.heads)),
      conv_(s, c, spec.key / "conv1d", {}, spec.conv_channels(), spec.kernel),
      norm_(s, c, {.key = spec.key / "norm", .eps = spec.eps, .span = HeadNormSpan::group},
            spec.groups, spec.inner() / spec.groups) {
    const auto linears = linears_of(spec, hidden);
    in_ = LinearSlot(s, c, linears[0]);
    out_ = LinearSlot(s, c, linears[1]);
}

void Mamba2::forward(Stream& s, const Batch& b, View x) const {
    Workspace& w = s.workspace();
    const auto scope = w.scope();
    const int64_t tokens = x.shape[0], inner = spec_.inner(), heads = spec_.heads;
    const int64_t keys = int64_t{spec_.groups} * spec_.state;
    // Columns: z, then what the convolution reads (x, B, C), then the step of each head.
    const View all = w.take(DType::f32, {tokens, in_.spec.out});
    if (b.tap) b.tap->see(s, in_.spec.tag, x);
    in_.linear->forward(s, x, all);

    const StateView state = b.states->layer(layer_);
    const View mixed = w.take(DType::f32, {tokens, spec_.conv_channels()});
    ops::causal_conv(s, {.x = slice_columns(all, inner, spec_.conv_channels()),
                         .weight = conv_.weight.view,
                         .bias = conv_.bias.view,
                         .y = mixed,
                         .window = state.window,
                         .seq = b.state_rows(),
                         .silu = true});
    const View log_decay = w.take(DType::f32, {tokens, heads});
    const View step = w.take(DType::f32, {tokens, heads});
    ops::recurrence_gates(s, {.a = slice_columns(all, inner + spec_.conv_channels(), heads),
                              .a_log = a_log_.view,
                              .step_bias = step_bias_.view,
                              .log_decay = log_decay,
                              .write = step,
                              .step_min = spec_.step_min,
                              .step_max = spec_.step_max});
    const View y = w.take(DType::f32, {tokens, inner});
    ops::recurrence(s, {.q = slice_columns(mixed, inner + keys, keys),
                        .k = slice_columns(mixed, inner, keys),
                        .v = slice_columns(mixed, 0, inner),
                        .log_decay = log_decay,
                        .write = step,
                        .skip = skip_.view,
                        .y = y,
                        .memory = state.memory,
                        .seq = b.state_rows(),
                        .key_heads = spec_.groups});
    ops::gated_act(s, {.gate = slice_columns(all, 0, inner), .up = y, .y = y, .act = Act::silu});
    norm_.forward(s, y, y);
    if (b.tap) b.tap->see(s, out_.spec.tag, y);
    out_.linear->forward(s, y, x);
}

void Mamba2::each_linear(const LinearVisitor& visit) {
    visit(in_);
    visit(out_);
}

}  // namespace exl3
