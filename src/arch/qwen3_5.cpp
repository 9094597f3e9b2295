#include "arch/qwen_hybrid.h"

namespace exl3::arch {

// Qwen 3.5: the mixers of Qwen3-Next with their projections apart; dense, or every layer a mixture
// of experts. The classes with a vision tower have the same text part.
ModelSpec qwen3_5(const ArchInput& in) {
    ModelSpec m = qwen_hybrid(in, 1e7);
    const Act act = activation(in, "hidden_act");
    const int inner = size(in.config, "intermediate_size");
    for (BlockSpec& block : m.blocks)
        block.mlp = GatedMlpSpec{.key = block.key / "mlp", .inner = inner, .act = act};
    return m;
}

ModelSpec qwen3_5_moe(const ArchInput& in) {
    ModelSpec m = qwen_hybrid(in, 1e7);
    for (BlockSpec& block : m.blocks) block.mlp = qwen_experts(in, block.key / "mlp");
    return m;
}

}  // namespace exl3::arch
