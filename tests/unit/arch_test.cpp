#include "arch/arch.h"

#include <gtest/gtest.h>

namespace exl3 {
namespace {

Json base_config(const std::string& architecture = "LlamaForCausalLM") {
    return {{"architectures", {architecture}},
            {"hidden_size", 256},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"num_hidden_layers", 3},
            {"intermediate_size", 512},
            {"rms_norm_eps", 1e-5},
            {"vocab_size", 512},
            {"max_position_embeddings", 1024}};
}

ModelSpec spec_of(const Json& config) {
    return describe(HfConfig(config, "config.json"), [](std::string_view) { return false; });
}

std::string error_of(const Json& config) {
    try {
        spec_of(config);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Arch, AnUnknownOneIsRefusedByNameWithTheKnownOnes) {
    try {
        spec_of(base_config("NoSuchModel"));
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::unsupported);
        const std::string what = e.what();
        EXPECT_NE(what.find("config.json"), std::string::npos);
        EXPECT_NE(what.find("'NoSuchModel'"), std::string::npos);
        for (const auto& known : known_architectures())
            EXPECT_NE(what.find(known), std::string::npos);
    }
}

TEST(Arch, SizesThatNoModelHasAreRefusedByKey) {
    const std::vector<std::pair<std::string, Json>> bad = {{"hidden_size", 0},
                                                           {"hidden_size", -5},
                                                           {"hidden_size", "256"},
                                                           {"hidden_size", 256.5},
                                                           {"hidden_size", 1e12},
                                                           {"num_hidden_layers", 1000000},
                                                           {"num_attention_heads", 0},
                                                           {"num_key_value_heads", 3},
                                                           {"vocab_size", nullptr},
                                                           {"rms_norm_eps", 0},
                                                           {"rms_norm_eps", "small"},
                                                           {"head_dim", -64},
                                                           {"hidden_act", "swoosh"},
                                                           {"rope_theta", 0},
                                                           {"partial_rotary_factor", 0.001},
                                                           {"max_position_embeddings", -1}};
    for (const auto& [key, value] : bad) {
        Json c = base_config();
        c[key] = value;
        const std::string what = error_of(c);
        EXPECT_NE(what.find(key), std::string::npos)
            << key << " = " << value << ": '" << what << "'";
        EXPECT_NE(what.find("config.json"), std::string::npos) << what;
    }
}

TEST(Arch, AKeyThatChangesTheMathsAndIsNotReadIsAnError) {
    Json c = base_config();
    c["attn_logit_softcapping"] = 50.0;
    EXPECT_NE(error_of(c).find("attn_logit_softcapping"), std::string::npos);
    c["attn_logit_softcapping"] = nullptr;
    EXPECT_EQ(error_of(c), "");
    c["num_experts"] = 8;
    EXPECT_NE(error_of(c).find("num_experts"), std::string::npos);
}

TEST(Arch, BothGenerationsOfRopeKeysMeanTheSame) {
    Json old_style = base_config(), new_style = base_config();
    old_style["rope_theta"] = 5e5;
    old_style["rope_scaling"] = {{"type", "linear"}, {"factor", 4}};
    new_style["rope_parameters"] = {{"rope_type", "linear"}, {"rope_theta", 5e5}, {"factor", 4}};
    const auto rope = [](const Json& c) {
        return *std::get<AttentionSpec>(spec_of(c).blocks[0].mixer).rope;
    };
    EXPECT_EQ(rope(old_style).theta, rope(new_style).theta);
    EXPECT_EQ(rope(old_style).factor, 4);
    EXPECT_EQ(rope(new_style).scaling, RopeScaling::linear);
}

TEST(Arch, MalformedRopeIsRefused) {
    for (const Json& scaling :
         {Json{{"rope_type", "twist"}}, Json{{"rope_type", "linear"}, {"factor", 0}},
          Json{{"rope_type", "llama3"}, {"low_freq_factor", 4}, {"high_freq_factor", 4}},
          Json{{"rope_type", "longrope"}, {"short_factor", {1.0}}, {"long_factor", {1.0}}}}) {
        Json c = base_config();
        c["rope_scaling"] = scaling;
        EXPECT_NE(error_of(c), "") << scaling;
    }
}

TEST(Arch, Gemma3SlidesFiveLayersOfSix) {
    Json c = base_config("Gemma3ForCausalLM");
    c["num_hidden_layers"] = 12;
    c["sliding_window"] = 512;
    c["rope_theta"] = 1e6;
    const ModelSpec m = spec_of(c);
    for (int i = 0; i < 12; ++i) {
        const auto& a = std::get<AttentionSpec>(m.blocks[static_cast<size_t>(i)].mixer);
        EXPECT_EQ(a.window, i % 6 == 5 ? 0 : 512);
        EXPECT_EQ(a.rope->theta, i % 6 == 5 ? 1e6 : 1e4);
    }
}

}  // namespace
}  // namespace exl3
