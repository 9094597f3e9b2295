#include "arch/qwen_hybrid.h"

namespace exl3::arch {
namespace {

// Names under linear_attn. Their source has q, k and v apart; converted files hold them as one.
DeltaNetSpec olmo_delta_net(const ArchInput& in, const Common& c, const Key& at) {
    const int heads = in.config.get<int>("linear_num_key_heads", c.heads);
    DeltaNetSpec d{.key_heads = c.heads, .value_heads = c.heads};
    d.key_dim = heads > 0 ? c.hidden * 3 / 4 / heads : 0;
    d.value_dim = 2 * in.config.get<int>("linear_key_head_dim", d.key_dim);
    d = delta_net(in, at, d);
    d.write_scale = in.config.get<bool>("linear_allow_neg_eigval", true) ? 2 : 1;
    d.eps = 1e-5f;
    d.z = "g_proj", d.b = "b_proj", d.a = "a_proj", d.norm = "o_norm", d.out = "o_proj";
    d.qkv_parts = {"q_proj", "k_proj", "v_proj"};
    d.conv_parts = {"q_conv1d", "k_conv1d", "v_conv1d"};
    d.qkv_split = in.has((at / "q_proj.trellis").str());
    return d;
}

}  // namespace

// OLMo Hybrid: gated delta nets normed before, whose states may have negative eigenvalues, and
// attention as in OLMo 3, normed after; without position encoding where the config has no base.
ModelSpec olmo_hybrid(const ArchInput& in) {
    ModelSpec m = decoder(in);
    const Common c = common(in);
    const bool rotates = in.config.has("rope_theta") || in.config.has("rope_parameters.rope_theta");
    const auto full = full_attention_layers(in, c.layers);
    for (int i = 0; i < c.layers; ++i) {
        BlockSpec block = llama_block(in, c, i);
        // Writers differ in the names of norms: an attention layer's too is feedforward_layer_norm.
        const auto norm = [&](std::initializer_list<std::string_view> names) {
            return NormSpec{.key = first_standing(in, block.key, names), .eps = c.eps};
        };
        block.mixer_norm = norm({"input_layernorm", "attention_layer_norm"});
        block.mlp_norm = norm({"post_attention_layernorm", "feedforward_layer_norm"});
        if (full[static_cast<size_t>(i)]) {
            block.mixer_post_norm = block.mlp_norm;
            block.mlp_post_norm = norm({"post_feedforward_layernorm"});
            block.mixer_norm.reset();
            block.mlp_norm.reset();
            AttentionSpec& a = attention_of(block);
            if (!rotates) a.rope.reset();
            a.q_norm =
                NormSpec{.key = a.key / "q_norm", .eps = c.eps, .span = HeadNormSpan::all_heads};
            a.k_norm =
                NormSpec{.key = a.key / "k_norm", .eps = c.eps, .span = HeadNormSpan::all_heads};
        } else {
            block.mixer = olmo_delta_net(in, c, block.key / "linear_attn");
        }
        m.blocks.push_back(std::move(block));
    }
    return m;
}

}  // namespace exl3::arch
