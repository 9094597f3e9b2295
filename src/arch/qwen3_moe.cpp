#include <algorithm>

#include "arch/skeleton.h"

namespace exl3::arch {

ModelSpec qwen3(const ArchInput& in);

// Qwen 3 MoE: Qwen 3 with a softmax-routed mixture of experts, except in layers that
// mlp_only_layers or decoder_sparse_step leave dense.
ModelSpec qwen3_moe(const ArchInput& in) {
    ModelSpec m = qwen3(in);
    const HfConfig& c = in.config;
    const int inner = size(c, "moe_intermediate_size"), step = size(c, "decoder_sparse_step", 1);
    const auto dense = c.list<int>("mlp_only_layers");
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        const int layer = static_cast<int>(i);
        if ((layer + 1) % step != 0 || std::find(dense.begin(), dense.end(), layer) != dense.end())
            continue;
        m.blocks[i].mlp = experts(in, m.blocks[i].key / "mlp", inner, /*normalise_default=*/false);
    }
    return m;
}

}  // namespace exl3::arch
