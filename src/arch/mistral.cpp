#include "arch/skeleton.h"

namespace exl3::arch {

// Mistral: the Llama layout; version 0.1 slides a window over every layer.
ModelSpec mistral(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    const int window = in.config.get<int>("sliding_window", 0);
    for (BlockSpec& block : m.blocks) attention_of(block).window = window;
    return m;
}

}  // namespace exl3::arch
