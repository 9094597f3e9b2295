#include "arch/gemma.h"

namespace exl3::arch {

// Gemma 3 text: Gemma 2 without soft caps, with head norms on q and k; sliding layers rotate with a
// base of their own (rope_local_base_freq), unscaled.
ModelSpec gemma3(const ArchInput& given) {
    // Files of multimodal models leave out what the class fills in.
    const ArchInput in = with_defaults(given, {{"num_attention_heads", 8},
                                               {"num_key_value_heads", 4},
                                               {"head_dim", 256},
                                               {"rms_norm_eps", 1e-6},
                                               {"vocab_size", 262208},
                                               {"max_position_embeddings", 131072},
                                               {"rope_theta", 1e6}});
    ModelSpec m = gemma(in);
    add_head_norms(m);
    const HfConfig& c = in.config;
    const int pattern =
        c.find<int>({"sliding_window_pattern", "_sliding_window_pattern"}).value_or(6);
    if (pattern <= 0) c.fail("sliding_window_pattern", "needs to be positive");
    const auto w =
        windows(in, static_cast<int>(m.blocks.size()), c.get<int>("sliding_window", 4096),
                [&](int i) { return (i + 1) % pattern != 0; });
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        AttentionSpec& a = attention_of(m.blocks[i]);
        a.softcap = c.get<float>("attn_logit_softcapping", 0.0f);
        a.window = w[i];
        const bool sliding = w[i] > 0;
        a.rope =
            rope(in, RopeStyle::neox, a.head_dim, sliding ? "sliding_attention" : "full_attention");
        const auto per_type = c.child("rope_parameters");
        if (sliding && !(per_type && per_type->has("sliding_attention"))) {
            a.rope = RopeSpec{.dims = a.head_dim,
                              .theta = c.get<double>("rope_local_base_freq", 10000.0)};
        }
    }
    m.logit_softcap = c.get<float>("final_logit_softcapping", 0.0f);
    return m;
}

}  // namespace exl3::arch
