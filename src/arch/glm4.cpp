#include "arch/skeleton.h"

namespace exl3::arch {

// GLM-4-0414: sandwich norms, adjacent rotary pairs over half of each head, stacked gate_up source.
ModelSpec glm4(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        BlockSpec& block = m.blocks[i];
        const Key at = in.prefix / "layers" / static_cast<int>(i);
        AttentionSpec& a = attention_of(block);
        a.rope = rope(in, RopeStyle::gptj, a.head_dim, "", /*partial_default=*/0.5);
        block.mixer_post_norm =
            NormSpec{.key = at / "post_self_attn_layernorm", .eps = m.final_norm.eps};
        block.mlp_post_norm = NormSpec{.key = at / "post_mlp_layernorm", .eps = m.final_norm.eps};
        mlp_of(block).fused_gate_up = "gate_up_proj";
    }
    return m;
}

}  // namespace exl3::arch
