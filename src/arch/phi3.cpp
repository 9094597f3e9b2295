#include "arch/skeleton.h"

namespace exl3::arch {

// Phi 3 and 4: the Llama layout with stacked qkv and gate_up sources, longrope and partial
// rotation.
ModelSpec phi3(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    const int window = in.config.get<int>("sliding_window", 0);
    for (BlockSpec& block : m.blocks) {
        attention_of(block).fused_qkv = "qkv_proj";
        attention_of(block).window = window;
        mlp_of(block).fused_gate_up = "gate_up_proj";
    }
    return m;
}

}  // namespace exl3::arch
