#include "arch/skeleton.h"

namespace exl3::arch {

// ERNIE 4.5 dense: the Llama layout with adjacent rotary pairs.
ModelSpec ernie4_5(const ArchInput& in) {
    ModelSpec m = llama_like(in, /*tied_default=*/true);
    for (BlockSpec& block : m.blocks) attention_of(block).rope->style = RopeStyle::gptj;
    return m;
}

}  // namespace exl3::arch
