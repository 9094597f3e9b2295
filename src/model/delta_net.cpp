#include "model/delta_net.h"

#include <cmath>
#include <limits>

#include "ops/ops.h"

namespace exl3 {
namespace {

// The rows of b, then those of a, from one matrix or two. They are never quantized.
Tensor load_ba(Stream& s, const Checkpoint& c, const DeltaNetSpec& spec, int hidden) {
    const int heads = spec.value_heads;
    std::vector<float> rows;
    if (spec.ba.empty()) {
        for (const std::string& name : {spec.b, spec.a}) {
            const auto part =
                read_dense_weight(c, {.key = spec.key / name, .in = hidden, .out = heads});
            rows.insert(rows.end(), part.begin(), part.end());
        }
    } else {
        // Grouped by key head: the rows of b of its value heads, then those of a.
        const auto grouped =
            read_dense_weight(c, {.key = spec.key / spec.ba, .in = hidden, .out = 2 * heads});
        const int share = heads / spec.key_heads;
        for (const int half : {0, 1})
            for (int h = 0; h < heads; ++h) {
                const int row = h / share * 2 * share + half * share + h % share;
                const auto from = grouped.begin() + int64_t{row} * hidden;
                rows.insert(rows.end(), from, from + hidden);
            }
    }
    return upload_f32(s, rows, {2 * heads, hidden});
}

std::vector<Key> keys_below(const Key& key, const std::vector<std::string>& names) {
    std::vector<Key> keys;
    for (const std::string& name : names) keys.push_back(key / name);
    return keys;
}

}  // namespace

DeltaNet::DeltaNet(Stream& s, const Checkpoint& c, const DeltaNetSpec& spec, int hidden, int layer)
    : spec_(spec),
      layer_(layer),
      ba_(load_ba(s, c, spec, hidden)),
      a_log_(load_vector(s, c, spec.key / "A_log", spec.value_heads)),
      step_bias_(load_vector(s, c, spec.key / "dt_bias", spec.value_heads)),
      conv_(s, c, spec.key / spec.conv, keys_below(spec.key, spec.conv_parts), spec.conv_channels(),
            spec.kernel),
      norm_(s, c, {.key = spec.key / spec.norm, .eps = spec.eps}, spec.value_dim) {
    const auto linears = linears_of(spec, hidden);
    const size_t inputs = linears.size() - (spec.qkvz.empty() ? 2 : 1);
    for (size_t i = 0; i < inputs; ++i) qkv_.emplace_back(s, c, linears[i]);
    if (spec.qkvz.empty()) z_ = LinearSlot(s, c, linears[inputs]);
    out_ = LinearSlot(s, c, linears.back());
}

void DeltaNet::project(Stream& s, const Batch& b, ConstView x, View qkv, View z) const {
    if (b.tap) b.tap->see(s, qkv_[0].spec.tag, x);
    if (z_.linear) {
        int64_t column = 0;
        for (const LinearSlot& slot : qkv_) {
            slot.linear->forward(s, x, slice_columns(qkv, column, slot.spec.out));
            column += slot.spec.out;
        }
        z_.linear->forward(s, x, z);
        return;
    }
    const auto scope = s.workspace().scope();
    const View all = s.workspace().take(DType::f32, {x.shape[0], qkv_[0].spec.out});
    qkv_[0].linear->forward(s, x, all);
    const int64_t keys = spec_.keys();
    ops::split_groups(s, {.x = all,
                          .parts = {slice_columns(qkv, 0, keys), slice_columns(qkv, keys, keys),
                                    slice_columns(qkv, 2 * keys, spec_.values()), z},
                          .groups = spec_.key_heads});
}

void DeltaNet::forward(Stream& s, const Batch& b, View x) const {
    Workspace& w = s.workspace();
    const auto scope = w.scope();
    const int64_t tokens = x.shape[0], keys = spec_.keys(), values = spec_.values(),
                  heads = spec_.value_heads;
    const View qkv = w.take(DType::f32, {tokens, spec_.conv_channels()});
    const View z = w.take(DType::f32, {tokens, values});
    const View ba = w.take(DType::f32, {tokens, 2 * heads});
    project(s, b, x, qkv, z);
    ops::linear(s, {.x = x, .weight = ba_.view, .y = ba});

    const StateView state = b.states->layer(layer_);
    const View mixed = w.take(DType::f32, qkv.shape);
    ops::causal_conv(s, {.x = qkv,
                         .weight = conv_.weight.view,
                         .bias = conv_.bias.view,
                         .y = mixed,
                         .window = state.window,
                         .seq = b.state_rows(),
                         .silu = true});
    const View log_decay = w.take(DType::f32, {tokens, heads});
    const View write = w.take(DType::f32, {tokens, heads});
    ops::recurrence_gates(s, {.a = slice_columns(ba, heads, heads),
                              .b = slice_columns(ba, 0, heads),
                              .a_log = a_log_.view,
                              .step_bias = step_bias_.view,
                              .log_decay = log_decay,
                              .write = write,
                              .write_scale = spec_.write_scale,
                              .step_max = std::numeric_limits<float>::infinity()});
    const View y = w.take(DType::f32, {tokens, values});
    ops::recurrence(s, {.q = slice_columns(mixed, 0, keys),
                        .k = slice_columns(mixed, keys, keys),
                        .v = slice_columns(mixed, 2 * keys, values),
                        .log_decay = log_decay,
                        .write = write,
                        .y = y,
                        .memory = state.memory,
                        .seq = b.state_rows(),
                        .key_heads = spec_.key_heads,
                        .delta = true,
                        .normalize_eps = 1e-6f,
                        .scale = 1 / std::sqrt(static_cast<float>(spec_.key_dim))});
    norm_.forward(s, y, y);
    ops::gated_act(s, {.gate = z, .up = y, .y = y, .act = Act::silu});
    if (b.tap) b.tap->see(s, out_.spec.tag, y);
    out_.linear->forward(s, y, x);
}

void DeltaNet::each_linear(const LinearVisitor& visit) {
    for (LinearSlot& slot : qkv_) visit(slot);
    if (z_.linear) visit(z_);
    visit(out_);
}

}  // namespace exl3
