#include "arch/skeleton.h"

namespace exl3::arch {

// Seed-OSS: the Llama layout with biases on q, k and v (found in the file) and its own head_dim.
ModelSpec seed_oss(const ArchInput& in) {
    return llama_like(in);
}

}  // namespace exl3::arch
