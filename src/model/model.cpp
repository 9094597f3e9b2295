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

StateLayout state_layout(const ModelSpec& spec) {
    StateLayout layout;
    layout.layers.resize(spec.blocks.size());
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
