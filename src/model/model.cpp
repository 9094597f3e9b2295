#include "model/model.h"

namespace exl3 {

KvLayout kv_layout(const ModelSpec& spec) {
    KvLayout layout;
    for (const BlockSpec& block : spec.blocks) {
        const auto* a = std::get_if<AttentionSpec>(&block.mixer);
        layout.layers.push_back(a ? KvLayout::Layer{a->kv_heads, a->head_dim} : KvLayout::Layer{});
    }
    return layout;
}

namespace {

/// What a mixer keeps per sequence.
struct StateOf {
    int hidden;
    StateLayout::Layer operator()(const DeltaNetSpec& d) const {
        return {d.kernel - 1, d.conv_channels(), d.value_heads, d.key_dim, d.value_dim};
    }
    StateLayout::Layer operator()(const Mamba2Spec& m) const {
        return {m.kernel - 1, m.conv_channels(), m.heads, m.state, m.head_dim};
    }
    StateLayout::Layer operator()(const ShortConvSpec& c) const {
        return {.window = c.kernel - 1, .channels = hidden};
    }
    StateLayout::Layer operator()(const AttentionSpec&) const { return {}; }
    StateLayout::Layer operator()(std::monostate) const { return {}; }
};

}  // namespace

StateLayout state_layout(const ModelSpec& spec) {
    StateLayout layout;
    for (const BlockSpec& block : spec.blocks)
        layout.layers.push_back(std::visit(StateOf{spec.hidden}, block.mixer));
    return layout;
}

Model::Model(Stream& s, const Checkpoint& c, ModelSpec spec, const LoadProgress& progress)
    : spec_(std::move(spec)), embedding_(s, c, spec_), head_(s, c, spec_) {
    const int total = static_cast<int>(spec_.blocks.size());
    for (int i = 0; i < total; ++i) {
        if (progress) progress(i, total);
        blocks_.push_back(
            std::make_unique<Block>(s, c, spec_.blocks[static_cast<size_t>(i)], spec_.hidden, i));
    }
    if (progress) progress(total, total);
}

void Model::hidden(Stream& s, const Batch& b, View x) const {
    embedding_.forward(s, b.tokens, x);
    for (const auto& block : blocks_) block->forward(s, b, x);
}

void Model::each_linear(const LinearVisitor& visit) {
    for (auto& block : blocks_) block->each_linear(visit);
    head_.each_linear(visit);
}

}  // namespace exl3
