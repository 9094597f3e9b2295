#include <algorithm>

#include "arch/qwen_hybrid.h"

namespace exl3::arch {

// Qwen3-Next: three gated delta nets to one attention layer, and a mixture of experts with a shared
// expert, except in layers that mlp_only_layers or decoder_sparse_step leave dense.
ModelSpec qwen3_next(const ArchInput& in) {
    ModelSpec m = qwen_hybrid(in, 1e4);
    const HfConfig& c = in.config;
    const int step = size(c, "decoder_sparse_step", 1);
    const auto dense = c.list<int>("mlp_only_layers");
    for (int i = 0; i < static_cast<int>(m.blocks.size()); ++i) {
        BlockSpec& block = m.blocks[static_cast<size_t>(i)];
        const Key at = block.key / "mlp";
        if ((i + 1) % step != 0 || std::find(dense.begin(), dense.end(), i) != dense.end())
            block.mlp = GatedMlpSpec{.key = at,
                                     .inner = size(c, "intermediate_size"),
                                     .act = activation(in, "hidden_act")};
        else
            block.mlp = qwen_experts(in, at);
    }
    return m;
}

}  // namespace exl3::arch
