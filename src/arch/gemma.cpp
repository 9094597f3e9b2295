#include "arch/gemma.h"

#include <fmt/format.h>

#include <cmath>

namespace exl3::arch {

ModelSpec gemma(const ArchInput& in) {
    const HfConfig& c = in.config;
    const Common size = common(in);
    ModelSpec m = decoder(in, /*tied_default=*/true);
    m.tied_head = true;
    m.embed_scale = std::sqrt(static_cast<float>(m.hidden));
    m.final_norm.weight_bias = 1;
    const double pre = c.get<double>("query_pre_attn_scalar", 256.0);
    if (!(pre > 0))
        c.fail("query_pre_attn_scalar", fmt::format("found {}, needed a positive number", pre));
    const auto norm = [&](const Key& key) {
        return NormSpec{.key = key, .eps = size.eps, .weight_bias = 1};
    };
    const Act act = activation(in, c.has("hidden_activation") ? "hidden_activation" : "hidden_act");
    // Before the braces below, for the reason given in llama_block.
    const RopeSpec rope_spec = rope(in, RopeStyle::neox, size.head_dim);
    for (int i = 0; i < size.layers; ++i) {
        const Key at = in.prefix / "layers" / i;
        m.blocks.push_back({.key = at,
                            .mixer_norm = norm(at / "input_layernorm"),
                            .mixer = AttentionSpec{.key = at / "self_attn",
                                                   .heads = size.heads,
                                                   .kv_heads = size.kv_heads,
                                                   .head_dim = size.head_dim,
                                                   .scale = static_cast<float>(1 / std::sqrt(pre)),
                                                   .rope = rope_spec},
                            .mixer_post_norm = norm(at / "post_attention_layernorm"),
                            .mlp_norm = norm(at / "pre_feedforward_layernorm"),
                            .mlp = GatedMlpSpec{.key = at / "mlp", .inner = size.inner, .act = act},
                            .mlp_post_norm = norm(at / "post_feedforward_layernorm")});
    }
    return m;
}

}  // namespace exl3::arch
