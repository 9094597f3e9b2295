#include "arch/skeleton.h"

namespace exl3::arch {

// MiniMax M2: one norm over all heads of q and of k, part of each head rotated (rotary_dim),
// experts by sigmoid in every layer. The correction bias stands under either of two names.
ModelSpec minimax_m2(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    const HfConfig& c = in.config;
    if (c.get<bool>("use_qk_norm", true)) add_head_norms(m, HeadNormSpan::all_heads);
    const int inner = size(c, "intermediate_size");
    for (BlockSpec& block : m.blocks) {
        const Key at = block.key / "block_sparse_moe";
        MoeSpec moe = experts(in, at, inner);
        sigmoid_router(in, moe,
                       {at / "e_score_correction_bias", at / "gate.e_score_correction_bias"});
        moe.names = {.gate = "w1", .up = "w3", .down = "w2"};
        block.mlp = moe;
    }
    return m;
}

}  // namespace exl3::arch
