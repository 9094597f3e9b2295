#include <cmath>

#include "arch/gemma.h"

namespace exl3::arch {

// Gemma 2: sandwich norms that store weight - 1, soft caps, a window on every other layer.
ModelSpec gemma2(const ArchInput& in) {
    ModelSpec m = gemma(in);
    const HfConfig& c = in.config;
    const int window = c.find<int>({"sliding_window", "sliding_window_size"}).value_or(0);
    const int layers = static_cast<int>(m.blocks.size());
    const auto w = windows(in, layers, window, [](int i) { return i % 2 == 0; });
    for (int i = 0; i < layers; ++i) {
        AttentionSpec& a = attention_of(m.blocks[static_cast<size_t>(i)]);
        a.window = w[static_cast<size_t>(i)];
        a.softcap = c.get<float>("attn_logit_softcapping", 0.0f);
    }
    m.logit_softcap = c.get<float>("final_logit_softcapping", 0.0f);
    return m;
}

}  // namespace exl3::arch
