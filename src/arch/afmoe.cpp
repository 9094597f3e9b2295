#include <cmath>

#include "arch/skeleton.h"

namespace exl3::arch {

// Arcee Trinity: sandwich norms, head norms, a gate on every channel of the attention's output;
// only layers with a window rotate. Experts by sigmoid after a dense prefix.
ModelSpec afmoe(const ArchInput& given) {
    const ArchInput in = with_defaults(given, {{"rms_norm_eps", 1e-5}});
    ModelSpec m = llama_like(in);
    add_head_norms(m);
    const HfConfig& c = in.config;
    if (c.get<bool>("mup_enabled", false)) m.embed_scale = std::sqrt(static_cast<float>(m.hidden));
    const int every = size(c, "global_attn_every_n_layers", 4);
    const auto w =
        windows(in, static_cast<int>(m.blocks.size()), c.get<int>("sliding_window", 1024),
                [&](int i) { return (i + 1) % every != 0; });
    const int inner = size(c, "moe_intermediate_size"), dense = c.get<int>("num_dense_layers", 1),
              shared = shared_width(c, "num_shared_experts", 0, inner);
    if (const auto score = c.get<std::string>("score_func", "sigmoid"); score != "sigmoid")
        c.fail("score_func", "found '" + score + "', needed sigmoid");
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        BlockSpec& block = m.blocks[i];
        const auto norm = [&](std::string_view name) {
            return NormSpec{.key = block.key / name, .eps = m.final_norm.eps};
        };
        block.mixer_post_norm = norm("post_attention_layernorm");
        block.mlp_norm = norm("pre_mlp_layernorm");
        block.mlp_post_norm = norm("post_mlp_layernorm");
        AttentionSpec& a = attention_of(block);
        a.window = w[i];
        if (w[i] == 0) a.rope.reset();
        a.gate = a.key / "gate_proj";
        a.gate_channels = true;
        if (static_cast<int>(i) < dense) continue;
        const Key at = block.key / "mlp";
        MoeSpec moe = experts(in, at, inner);
        sigmoid_router(in, moe, {at / "expert_bias"});
        moe.router.key = at / "router.gate";
        moe.router.scale = c.get<float>("route_scale", 1.0f);
        moe.router.normalise = c.get<bool>("route_norm", true);
        add_shared_expert(moe, at / "shared_experts", shared);
        block.mlp = moe;
    }
    return m;
}

}  // namespace exl3::arch
