#include "arch/skeleton.h"

namespace exl3::arch {

// OLMo 3: norms after each sublayer only, one norm over all heads of q and of k. Sliding layers
// rotate with the same base, unscaled.
ModelSpec olmo3(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    norm_after_only(m);
    add_head_norms(m, HeadNormSpan::all_heads);
    const HfConfig& c = in.config;
    const auto w =
        windows(in, static_cast<int>(m.blocks.size()), c.get<int>("sliding_window", 4096),
                [](int i) { return (i + 1) % 4 != 0; });
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        AttentionSpec& a = attention_of(m.blocks[i]);
        a.window = w[i];
        if (w[i] > 0) a.rope = RopeSpec{.dims = a.rope->dims, .theta = a.rope->theta};
    }
    return m;
}

}  // namespace exl3::arch
