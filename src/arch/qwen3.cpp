#include "arch/skeleton.h"

namespace exl3::arch {

ModelSpec qwen2(const ArchInput& in);

// Qwen 3: Qwen 2 without biases, with an RMS norm over each head of q and k before RoPE.
ModelSpec qwen3(const ArchInput& in) {
    ModelSpec m = qwen2(in);
    for (BlockSpec& block : m.blocks) {
        AttentionSpec& a = attention_of(block);
        a.q_norm = {.key = a.key / "q_norm", .eps = block.mixer_norm.eps};
        a.k_norm = {.key = a.key / "k_norm", .eps = block.mixer_norm.eps};
    }
    return m;
}

}  // namespace exl3::arch
