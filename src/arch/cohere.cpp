#include "arch/skeleton.h"

namespace exl3::arch {

// Command-R: attention and MLP side by side behind one LayerNorm, adjacent rotary pairs, scaled
// logits; the larger ones norm each head of q and k with a weight of its own.
ModelSpec cohere(const ArchInput& in) {
    ModelSpec m = llama_like(in, /*tied_default=*/true);
    const HfConfig& c = in.config;
    m.final_norm.layer_norm = true;
    m.logit_scale = c.get<float>("logit_scale", 0.0625f);
    for (BlockSpec& block : m.blocks) {
        block.parallel = true;
        block.mixer_norm->layer_norm = true;
        block.mlp_norm.reset();
        attention_of(block).rope->style = RopeStyle::gptj;
    }
    if (c.get<bool>("use_qk_norm", false)) add_head_norms(m, HeadNormSpan::own_weight);
    return m;
}

}  // namespace exl3::arch
