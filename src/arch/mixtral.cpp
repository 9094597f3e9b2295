#include "arch/skeleton.h"

namespace exl3::arch {

ModelSpec mistral(const ArchInput& in);

// Mixtral: Mistral with a mixture of experts in every layer, under names of its own.
ModelSpec mixtral(const ArchInput& in) {
    ModelSpec m = mistral(in);
    const int inner = size(in.config, "intermediate_size");
    for (BlockSpec& block : m.blocks) {
        MoeSpec moe = experts(in, block.key / "block_sparse_moe", inner);
        moe.names = {.gate = "w1", .up = "w3", .down = "w2"};
        block.mlp = moe;
    }
    return m;
}

}  // namespace exl3::arch
