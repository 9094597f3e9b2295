#include "arch/skeleton.h"

namespace exl3::arch {

// dots.llm1: head norms on q and k, experts by sigmoid after a dense prefix, a window on the layers
// that layer_types or max_window_layers name.
ModelSpec dots1(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    add_head_norms(m);
    add_sigmoid_experts(in, m, /*first_dense_default=*/0, /*normalise_default=*/false);
    const HfConfig& c = in.config;
    const int window = c.get<int>("sliding_window", 0), first = c.get<int>("max_window_layers", 0);
    const auto w = windows(in, static_cast<int>(m.blocks.size()), window,
                           [&](int i) { return window > 0 && i >= first; });
    for (size_t i = 0; i < m.blocks.size(); ++i) attention_of(m.blocks[i]).window = w[i];
    return m;
}

}  // namespace exl3::arch
