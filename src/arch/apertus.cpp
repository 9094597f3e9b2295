#include "arch/skeleton.h"

namespace exl3::arch {

// Apertus: head norms and an MLP without a gate whose activation has learned numbers (xIELU).
ModelSpec apertus(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    const HfConfig& c = in.config;
    if (c.get<bool>("qk_norm", true)) add_head_norms(m);
    if (c.get<bool>("post_norm", false))
        c.fail("post_norm", "found true, which no released model has");
    for (BlockSpec& block : m.blocks) {
        block.mixer_norm->key = block.key / "attention_layernorm";
        block.mlp_norm->key = block.key / "feedforward_layernorm";
        const GatedMlpSpec gated = mlp_of(block);
        block.mlp = PlainMlpSpec{.key = gated.key, .inner = gated.inner, .act = gated.act};
    }
    return m;
}

}  // namespace exl3::arch
