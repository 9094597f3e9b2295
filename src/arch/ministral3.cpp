#include "arch/skeleton.h"

namespace exl3::arch {

// Ministral 3: the Llama layout with YaRN and queries that grow with the logarithm of their
// position (llama_4_scaling_beta, read with the rope parameters).
ModelSpec ministral3(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    const int window = in.config.get<int>("sliding_window", 0);
    for (BlockSpec& block : m.blocks) attention_of(block).window = window;
    return m;
}

}  // namespace exl3::arch
