#include <fmt/format.h>

#include <cmath>

#include "arch/skeleton.h"

namespace exl3::arch {

// Multi-head latent attention in every block; the rest is llama_like()'s.
ModelSpec latent_like(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    const HfConfig& c = in.config;
    LatentAttentionSpec a{.heads = size(c, "num_attention_heads"),
                          .query_rank = c.get<int>("q_lora_rank", 0),
                          .rank = size(c, "kv_lora_rank"),
                          .nope_dim = size(c, "qk_nope_head_dim"),
                          .rope_dim = size(c, "qk_rope_head_dim"),
                          .value_dim = size(c, "v_head_dim")};
    if (a.query_rank < 0) c.fail("q_lora_rank", "needs to be positive or null");
    for (const char* key : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
        if (size(c, key) > 8192) c.fail(key, "needs to be at most 8192");
    const bool pairs = c.get<bool>("rope_interleave", true);
    // The whole of the rotated part, whatever partial_rotary_factor says.
    a.rope = rope(in, pairs ? RopeStyle::gptj : RopeStyle::neox, a.rope_dim);
    a.rope.dims = a.rope_dim;
    if (a.rope_dim % 2) c.fail("qk_rope_head_dim", "needs to be even");
    a.scale = 1 / std::sqrt(static_cast<float>(a.nope_dim + a.rope_dim));
    const auto scaling = c.child(c.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
    const double all = scaling ? scaling->get<double>("mscale_all_dim", 0.0) : 0;
    // Attention sharpens with YaRN's stretch.
    if (all != 0 && a.rope.scaling != RopeScaling::none && a.rope.factor > 1) {
        const double grow = 0.1 * all * std::log(a.rope.factor) + 1;
        a.scale *= static_cast<float>(grow * grow);
    }
    for (BlockSpec& block : m.blocks) {
        a.key = block.key / "self_attn";
        block.mixer = a;
    }
    return m;
}

// DeepSeek V3, Kimi K2, Moonlight: latent attention, experts by sigmoid in groups after a dense
// prefix. Draft layers after the last are left alone.
ModelSpec deepseek_v3(const ArchInput& given) {
    // Released checkpoints carry the keys; what the class fills in where one is missing.
    const ArchInput in =
        with_defaults(given, {{"n_group", 8}, {"topk_group", 4}, {"routed_scaling_factor", 2.5}});
    ModelSpec m = latent_like(in);
    const HfConfig& c = in.config;
    if (const auto f = c.get<std::string>("scoring_func", "sigmoid"); f != "sigmoid")
        c.fail("scoring_func", fmt::format("found '{}', needed sigmoid", f));
    add_sigmoid_experts(in, m, /*first_dense_default=*/3);
    return m;
}

}  // namespace exl3::arch
