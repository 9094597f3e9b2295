#include "arch/skeleton.h"

namespace exl3::arch {

// GLM-4.5 and later: rotation of half of each head, biases found in the file, head norms if
// use_qk_norm, experts by sigmoid after a dense prefix. A trailing draft layer is left alone.
ModelSpec glm4_moe(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    if (in.config.get<bool>("use_qk_norm", false)) add_head_norms(m);
    for (BlockSpec& block : m.blocks) {
        AttentionSpec& a = attention_of(block);
        a.rope = rope(in, RopeStyle::neox, a.head_dim, "", /*partial_default=*/0.5);
    }
    add_sigmoid_experts(in, m, /*first_dense_default=*/1);
    return m;
}

}  // namespace exl3::arch
