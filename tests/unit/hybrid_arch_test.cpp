// How the configs of hybrid models are read: which layer is what, sizes, spellings, refusals.
#include <gtest/gtest.h>

#include <cmath>

#include "arch/arch.h"
#include "model/model.h"

namespace exl3 {
namespace {

using Has = std::function<bool(std::string_view)>;

ModelSpec spec_of(
    const Json& config, const Has& has = [](std::string_view) { return false; }) {
    return describe(HfConfig(config, "config.json"), has);
}

std::string error_of(const Json& config) {
    try {
        spec_of(config);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

Json base(const std::string& architecture) {
    return {{"architectures", {architecture}},
            {"hidden_size", 256},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"num_hidden_layers", 8},
            {"intermediate_size", 512},
            {"rms_norm_eps", 1e-5},
            {"vocab_size", 512}};
}

Json nemotron() {
    Json c = base("NemotronHForCausalLM");
    c.erase("rms_norm_eps");
    c.update({{"layer_norm_epsilon", 1e-5},
              {"mamba_num_heads", 8},
              {"mamba_head_dim", 32},
              {"ssm_state_size", 64},
              {"n_groups", 2},
              {"num_hidden_layers", 4},
              {"hybrid_override_pattern", "M*-M"}});
    return c;
}

template <typename T>
std::vector<bool> mixers_of_kind(const ModelSpec& m) {
    std::vector<bool> is;
    for (const BlockSpec& block : m.blocks) is.push_back(std::holds_alternative<T>(block.mixer));
    return is;
}

TEST(HybridArch, LayerTypesOrAnIntervalSayWhereAttentionIs) {
    Json c = base("Qwen3_5ForCausalLM");
    EXPECT_EQ(mixers_of_kind<AttentionSpec>(spec_of(c)),
              (std::vector<bool>{false, false, false, true, false, false, false, true}));
    c["full_attention_interval"] = 3;
    EXPECT_TRUE(mixers_of_kind<AttentionSpec>(spec_of(c))[2]);
    c["num_hidden_layers"] = 2;
    c["layer_types"] = {"full_attention", "linear_attention"};
    EXPECT_EQ(mixers_of_kind<AttentionSpec>(spec_of(c)), (std::vector<bool>{true, false}));
    c["layer_types"] = {"full_attention", "sliding_attention"};
    EXPECT_NE(error_of(c).find("layer_types"), std::string::npos);
    c["layer_types"] = {"full_attention"};
    EXPECT_NE(error_of(c).find("layer_types"), std::string::npos);
}

TEST(HybridArch, QwenAttentionIsGatedAndRotatesAQuarter) {
    Json c = base("Qwen3_5ForCausalLM");
    c["head_dim"] = 128;
    const ModelSpec m = spec_of(c);
    const auto& a = std::get<AttentionSpec>(m.blocks[3].mixer);
    EXPECT_TRUE(a.interleaved_gate);
    EXPECT_EQ(a.rope->dims, 32);
    EXPECT_EQ(a.rope->theta, 1e7);
    EXPECT_EQ(a.q_norm->weight_bias, 1);
    EXPECT_EQ(linears_of(a, 256)[0].out, 2 * 4 * 128);
}

TEST(HybridArch, FusedProjectionsAreUsedWhereTheFileHasThem) {
    Json c = base("Qwen3NextForCausalLM");
    c.update({{"num_experts", 4}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 128}});
    const auto delta = [&](const Has& has) {
        return std::get<DeltaNetSpec>(spec_of(c, has).blocks[0].mixer);
    };
    const DeltaNetSpec fused = delta([](std::string_view name) {
        return name.ends_with("in_proj_qkvz.trellis") || name.ends_with("in_proj_ba.weight");
    });
    EXPECT_EQ(linears_of(fused, 256).size(), 2u);
    EXPECT_EQ(linears_of(fused, 256)[0].out, 2 * 16 * 128 + 2 * 32 * 128);
    EXPECT_EQ(fused.ba, "in_proj_ba");
    const DeltaNetSpec apart = delta([](std::string_view) { return false; });
    EXPECT_EQ(linears_of(apart, 256).size(), 3u);
}

TEST(HybridArch, SizesOfADeltaNetMustFit) {
    Json c = base("Qwen3_5ForCausalLM");
    c["linear_num_value_heads"] = 24;
    EXPECT_NE(error_of(c).find("linear_num_value_heads"), std::string::npos);
    c["linear_num_value_heads"] = 1 << 24;
    EXPECT_NE(error_of(c).find("linear_num_value_heads"), std::string::npos);
    c["linear_num_value_heads"] = 32;
    c["linear_conv_kernel_dim"] = 1;
    EXPECT_NE(error_of(c).find("linear_conv_kernel_dim"), std::string::npos);
}

TEST(HybridArch, OlmoHybridFillsInItsSizesAndMayNotRotate) {
    Json c = base("OlmoHybridForCausalLM");
    const ModelSpec plain = spec_of(c);
    const auto& d = std::get<DeltaNetSpec>(plain.blocks[0].mixer);
    EXPECT_EQ(d.key_heads, 4);
    EXPECT_EQ(d.key_dim, 48);
    EXPECT_EQ(d.value_dim, 96);
    EXPECT_EQ(d.write_scale, 2);
    EXPECT_EQ(linears_of(d, 256)[0].parts.size(), 3u);
    EXPECT_FALSE(std::get<AttentionSpec>(plain.blocks[3].mixer).rope);
    EXPECT_TRUE(plain.blocks[0].mixer_norm && plain.blocks[0].mlp_norm);
    EXPECT_TRUE(plain.blocks[3].mixer_post_norm && !plain.blocks[3].mixer_norm);
    c["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e5}};
    c["linear_allow_neg_eigval"] = false;
    const ModelSpec rotating = spec_of(c);
    EXPECT_EQ(std::get<AttentionSpec>(rotating.blocks[3].mixer).rope->theta, 5e5);
    EXPECT_EQ(std::get<DeltaNetSpec>(rotating.blocks[0].mixer).write_scale, 1);
}

TEST(HybridArch, NemotronLayersComeAsLettersOrNames) {
    const ModelSpec letters = spec_of(nemotron());
    EXPECT_EQ(mixers_of_kind<Mamba2Spec>(letters), (std::vector<bool>{true, false, false, true}));
    EXPECT_TRUE(std::holds_alternative<PlainMlpSpec>(letters.blocks[2].mlp));
    EXPECT_FALSE(letters.blocks[2].mixer_norm);
    EXPECT_EQ(std::get<Mamba2Spec>(letters.blocks[0].mixer).step_max, INFINITY);
    Json c = nemotron();
    c.erase("hybrid_override_pattern");
    c.erase("num_hidden_layers");
    c["layers_block_type"] = {"mamba", "attention", "mlp", "mamba"};
    const ModelSpec names = spec_of(c);
    EXPECT_EQ(mixers_of_kind<Mamba2Spec>(names), mixers_of_kind<Mamba2Spec>(letters));
    c["layers_block_type"] = {"mamba", "lstm"};
    EXPECT_NE(error_of(c).find("lstm"), std::string::npos);
}

TEST(HybridArch, NemotronKeepsOneStatePerMambaLayer) {
    const StateLayout l = state_layout(spec_of(nemotron()));
    ASSERT_EQ(l.layers.size(), 4u);
    EXPECT_EQ(l.layers[0].channels, 8 * 32 + 2 * 2 * 64);
    EXPECT_EQ(l.layers[0].heads, 8);
    EXPECT_EQ(l.layers[0].key_dim, 64);
    EXPECT_EQ(l.layers[0].value_dim, 32);
    EXPECT_EQ(l.layers[1].bytes(), 0u);
    EXPECT_EQ(kv_layout(spec_of(nemotron())).layers[1].kv_heads, 2);
    EXPECT_EQ(kv_layout(spec_of(nemotron())).layers[0].kv_heads, 0);
}

TEST(HybridArch, NemotronRefusesWhatMakesNoSense) {
    Json c = nemotron();
    c["time_step_limit"] = {0.1, 0.01};
    EXPECT_NE(error_of(c).find("time_step_limit"), std::string::npos);
    c = nemotron();
    c["n_groups"] = 3;
    EXPECT_NE(error_of(c).find("n_groups"), std::string::npos);
    c = nemotron();
    c["hybrid_override_pattern"] = "M*";
    EXPECT_NE(error_of(c).find("hybrid_override_pattern"), std::string::npos);
    c["hybrid_override_pattern"] = "M*?M";
    EXPECT_NE(error_of(c).find("'?'"), std::string::npos);
}

TEST(HybridArch, DenseLfm2CutsItsWidthToTwoThirds) {
    Json c = base("Lfm2ForCausalLM");
    c.erase("rms_norm_eps");
    c.update({{"norm_eps", 1e-5}, {"block_ff_dim", 12288}, {"full_attn_idxs", {2, 5}}});
    const ModelSpec m = spec_of(c);
    EXPECT_EQ(std::get<GatedMlpSpec>(m.blocks[0].mlp).inner, 8192);
    EXPECT_EQ(mixers_of_kind<AttentionSpec>(m),
              (std::vector<bool>{false, false, true, false, false, true, false, false}));
    c["block_auto_adjust_ff_dim"] = false;
    EXPECT_EQ(std::get<GatedMlpSpec>(spec_of(c).blocks[0].mlp).inner, 12288);
    c["block_auto_adjust_ff_dim"] = true;
    c["block_ff_dim"] = 6656;
    EXPECT_EQ(std::get<GatedMlpSpec>(spec_of(c).blocks[0].mlp).inner, 4608);
    EXPECT_EQ(std::get<ShortConvSpec>(m.blocks[0].mixer).kernel, 3);
}

}  // namespace
}  // namespace exl3
