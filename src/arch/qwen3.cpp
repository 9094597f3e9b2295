#include "arch/skeleton.h"

namespace exl3::arch {

ModelSpec qwen2(const ArchInput& in);

// Qwen 3: Qwen 2 without biases, with an RMS norm over each head of q and k before RoPE.
ModelSpec qwen3(const ArchInput& in) {
    ModelSpec m = qwen2(in);
    add_head_norms(m);
    return m;
}

}  // namespace exl3::arch
