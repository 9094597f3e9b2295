#include "arch/skeleton.h"

namespace exl3::arch {

ModelSpec ministral3(const ArchInput& in);
ModelSpec latent_like(const ArchInput& in);

namespace {

// Mistral Small 4: latent attention, experts by softmax beside an ungated shared one. EXL3 files
// hold the experts' up matrices divided by 128.
ModelSpec mistral4(const ArchInput& in) {
    ModelSpec m = latent_like(in);
    const HfConfig& c = in.config;
    const int inner = size(c, "moe_intermediate_size"),
              shared = shared_width(c, "n_shared_experts", 1, inner);
    const auto sparse = sparse_layers(in, m.blocks.size(), /*first_dense_default=*/0);
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        if (!sparse[i]) continue;
        const Key at = m.blocks[i].key / "mlp";
        MoeSpec moe = experts(in, at, inner);
        moe.router.scale = c.get<float>("routed_scaling_factor", 1.0f);
        moe.router.groups = size(c, "n_group", 1);
        moe.router.groups_kept = size(c, "topk_group", 1);
        moe.up_divisor = 128;
        keep_stacked(moe);
        add_shared_expert(moe, at / "shared_experts", shared);
        m.blocks[i].mlp = moe;
    }
    return m;
}

}  // namespace

// Mistral Small 3.1 and later, Ministral 3, Devstral 2, Mistral Small 4: the text part, whose kind
// text_config names. Vision is left alone.
ModelSpec mistral3(const ArchInput& in) {
    return in.config.get<std::string>("model_type", "mistral") == "mistral4" ? mistral4(in)
                                                                             : ministral3(in);
}

}  // namespace exl3::arch
