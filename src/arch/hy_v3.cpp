#include "arch/skeleton.h"

namespace exl3::arch {

// Hunyuan 3: experts by sigmoid under names of its own. Draft layers after the last are left alone.
ModelSpec hy_v3(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    const HfConfig& c = in.config;
    if (c.get<bool>("qk_norm", true)) add_head_norms(m);
    const int inner = size(c, "moe_intermediate_size"),
              shared = shared_width(c, "num_shared_experts", 1, inner);
    const auto sparse = sparse_layers(in, m.blocks.size(), /*first_dense_default=*/1);
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        if (!sparse[i]) continue;
        const Key at = m.blocks[i].key / "mlp";
        MoeSpec moe = experts(in, at, inner);
        sigmoid_router(in, moe, {at / "expert_bias", at / "gate.e_score_correction_bias"});
        moe.router.key = at / "router.gate";
        moe.router.scale = static_cast<float>(
            c.find<double>({"router_scaling_factor", "routed_scaling_factor"}).value_or(2.826));
        moe.router.normalise = c.get<bool>("route_norm", true);
        add_shared_expert(moe, at / "shared_mlp", shared);
        m.blocks[i].mlp = moe;
    }
    return m;
}

}  // namespace exl3::arch
