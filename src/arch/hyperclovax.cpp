#include "arch/skeleton.h"

namespace exl3::arch {

// HyperCLOVA X: the Llama layout with multipliers on embedding, attention scores and logits, and,
// unless switched off, a norm after each sublayer as well.
ModelSpec hyperclovax(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    const HfConfig& c = in.config;
    m.embed_scale = c.get<float>("embedding_multiplier", 1.0f);
    m.logit_scale = c.get<float>("logits_scaling", 1.0f);
    if (c.get<double>("residual_multiplier", 1.0) != 1.0)
        c.fail("residual_multiplier", "found another value than 1, which no released model has");
    const auto scale = c.get<float>("attention_multiplier", 0.0f);
    const bool post = c.get<bool>("use_post_norm", true);
    for (BlockSpec& block : m.blocks) {
        attention_of(block).scale = scale;
        if (!post) continue;
        NormSpec norm = m.final_norm;
        norm.key = block.key / "post_norm1";
        block.mixer_post_norm = norm;
        norm.key = block.key / "post_norm2";
        block.mlp_post_norm = norm;
    }
    return m;
}

}  // namespace exl3::arch
