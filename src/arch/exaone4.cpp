#include "arch/skeleton.h"

namespace exl3::arch {

// EXAONE 4: norms after each sublayer only, head norms on q and k. Where layers slide a window,
// those rotate and the full ones carry no position.
ModelSpec exaone4(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    norm_after_only(m);
    add_head_norms(m);
    const HfConfig& c = in.config;
    const int window = c.get<int>("sliding_window", 0), layers = static_cast<int>(m.blocks.size());
    std::string pattern;  // such as "LLLG", repeated; the last layer is always full
    if (window > 0 && c.list<std::string>("layer_types").empty())
        pattern = c.get<std::string>("sliding_window_pattern", "LLLG");
    const auto w = windows(in, layers, window, [&](int i) {
        return !pattern.empty() && i + 1 < layers &&
               pattern[static_cast<size_t>(i) % pattern.size()] == 'L';
    });
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        AttentionSpec& a = attention_of(m.blocks[i]);
        a.window = w[i];
        if (window > 0 && w[i] == 0) a.rope.reset();
    }
    return m;
}

}  // namespace exl3::arch
