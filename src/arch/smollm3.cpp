#include <fmt/format.h>

#include "arch/skeleton.h"

namespace exl3::arch {

// SmolLM 3: the Llama layout; no_rope_layers is 1 where RoPE is applied and 0 where it is not.
ModelSpec smollm3(const ArchInput& in) {
    ModelSpec m = llama_like(in, /*tied_default=*/true);
    const HfConfig& c = in.config;
    const auto rotates = c.list<int>("no_rope_layers");
    const int interval = c.get<int>("no_rope_layer_interval", 4);
    if (interval <= 0) c.fail("no_rope_layer_interval", "needs to be positive");
    if (!rotates.empty() && rotates.size() < m.blocks.size())
        c.fail("no_rope_layers",
               fmt::format("found {} entries, needed {}", rotates.size(), m.blocks.size()));
    const int window =
        c.get<bool>("use_sliding_window", false) ? c.get<int>("sliding_window", 0) : 0;
    const auto w =
        windows(in, static_cast<int>(m.blocks.size()), window, [](int) { return false; });
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        AttentionSpec& a = attention_of(m.blocks[i]);
        a.window = w[i];
        const bool rope =
            rotates.empty() ? (static_cast<int>(i) + 1) % interval != 0 : rotates[i] != 0;
        if (!rope) a.rope.reset();
    }
    return m;
}

}  // namespace exl3::arch
