#include "arch/skeleton.h"

namespace exl3::arch {

// Qwen 2 and 2.5: the Llama layout; biases on q, k and v are found in the file. A window, where one
// is switched on, slides over the layers from max_window_layers on.
ModelSpec qwen2(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    const HfConfig& c = in.config;
    const int window =
        c.get<bool>("use_sliding_window", false) ? c.get<int>("sliding_window", 0) : 0;
    const int first = c.get<int>("max_window_layers", 0),
              layers = static_cast<int>(m.blocks.size());
    const auto w = windows(in, layers, window, [&](int i) { return i >= first; });
    for (int i = 0; i < layers; ++i)
        attention_of(m.blocks[static_cast<size_t>(i)]).window = w[static_cast<size_t>(i)];
    return m;
}

}  // namespace exl3::arch
