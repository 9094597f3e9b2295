#include "arch/skeleton.h"

namespace exl3::arch {

// Arcee AFM: the Llama layout with an MLP that has no gate, down(relu(up(x))^2).
ModelSpec arcee(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    for (BlockSpec& block : m.blocks) {
        const GatedMlpSpec& gated = mlp_of(block);
        block.mlp = PlainMlpSpec{.key = gated.key, .inner = gated.inner, .act = gated.act};
    }
    return m;
}

}  // namespace exl3::arch
