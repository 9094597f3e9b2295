#include "arch/skeleton.h"

namespace exl3::arch {

ModelSpec ernie4_5(const ArchInput& in);

// ERNIE 4.5 MoE: ERNIE 4.5 with experts by softmax, chosen with a correction bias, in the layers
// that moe_layer_start_index, moe_layer_end_index and moe_layer_interval name.
ModelSpec ernie4_5_moe(const ArchInput& in) {
    ModelSpec m = ernie4_5(in);
    const HfConfig& c = in.config;
    const int inner = size(c, "moe_intermediate_size"),
              first = c.get<int>("moe_layer_start_index", 1),
              end = c.get<int>("moe_layer_end_index", -1),
              interval = size(c, "moe_layer_interval", 1),
              shared = shared_width(c, "moe_num_shared_experts", 0, inner);
    for (int i = 0; i < static_cast<int>(m.blocks.size()); ++i) {
        if (i < first || (end >= 0 && i > end) || (i + 1) % interval != 0) continue;
        BlockSpec& block = m.blocks[static_cast<size_t>(i)];
        const Key at = block.key / "mlp";
        MoeSpec moe = experts(in, at, inner);
        moe.router.correction_bias = {at / "moe_statics.e_score_correction_bias"};
        moe.router.normalise = true;
        add_shared_expert(moe, at / "shared_experts", shared);
        block.mlp = moe;
    }
    return m;
}

}  // namespace exl3::arch
