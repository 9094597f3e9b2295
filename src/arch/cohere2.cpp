#include "arch/skeleton.h"

namespace exl3::arch {

ModelSpec cohere(const ArchInput& in);

// Command-R7B and Command-A: Cohere with a window on three layers of four; the full ones carry no
// position.
ModelSpec cohere2(const ArchInput& in) {
    ModelSpec m = cohere(in);
    const HfConfig& c = in.config;
    const int pattern = c.get<int>("sliding_window_pattern", 4);
    if (pattern <= 0) c.fail("sliding_window_pattern", "needs to be positive");
    const auto w =
        windows(in, static_cast<int>(m.blocks.size()), c.get<int>("sliding_window", 4096),
                [&](int i) { return (i + 1) % pattern != 0; });
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        AttentionSpec& a = attention_of(m.blocks[i]);
        a.window = w[i];
        if (w[i] == 0) a.rope.reset();
    }
    return m;
}

}  // namespace exl3::arch
