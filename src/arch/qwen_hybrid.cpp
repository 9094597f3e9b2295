#include "arch/qwen_hybrid.h"

#include <fmt/format.h>

namespace exl3 {

std::vector<bool> full_attention_layers(const ArchInput& in, int layers) {
    const HfConfig& c = in.config;
    const auto types = c.list<std::string>("layer_types");
    const int interval = size(c, "full_attention_interval", 4);
    if (!types.empty() && static_cast<int>(types.size()) < layers)
        c.fail("layer_types", fmt::format("found {} entries, needed {}", types.size(), layers));
    std::vector<bool> full;
    for (int i = 0; i < layers; ++i) {
        if (types.empty()) {
            full.push_back((i + 1) % interval == 0);
            continue;
        }
        const std::string& type = types[static_cast<size_t>(i)];
        if (type != "full_attention" && type != "linear_attention")
            c.fail("layer_types",
                   fmt::format("found '{}', needed full_attention or linear_attention", type));
        full.push_back(type == "full_attention");
    }
    return full;
}

DeltaNetSpec delta_net(const ArchInput& in, const Key& key, const DeltaNetSpec& otherwise) {
    const HfConfig& c = in.config;
    DeltaNetSpec d = otherwise;
    d.key = key;
    d.key_heads = size(c, "linear_num_key_heads", d.key_heads);
    d.value_heads = size(c, "linear_num_value_heads", d.value_heads);
    d.key_dim = size(c, "linear_key_head_dim", d.key_dim);
    d.value_dim = size(c, "linear_value_head_dim", d.value_dim);
    d.kernel = conv_kernel(c, "linear_conv_kernel_dim", d.kernel);
    if (d.value_heads % d.key_heads != 0)
        c.fail("linear_num_value_heads", fmt::format("found {}, needed a multiple of {} key heads",
                                                     d.value_heads, d.key_heads));
    return d;
}

namespace {

// The names that Qwen3-Next gives fused projections; a file that has them apart is read so.
DeltaNetSpec qwen_delta_net(const ArchInput& in, const Key& at, float eps) {
    DeltaNetSpec d = delta_net(
        in, at, {.key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128, .eps = eps});
    const auto stands = [&](const char* name) {
        return in.has((at / name / "weight").str()) || in.has((at / name / "trellis").str());
    };
    if (stands("in_proj_qkvz")) d.qkvz = "in_proj_qkvz";
    if (stands("in_proj_ba")) d.ba = "in_proj_ba";
    return d;
}

AttentionSpec gated_attention(const ArchInput& in, const Common& c, const Key& at,
                              double theta_default) {
    RopeSpec r = rope(in, RopeStyle::neox, c.head_dim, "", 0.25);
    if (!in.config.has("rope_theta") && !in.config.has("rope_parameters.rope_theta"))
        r.theta = theta_default;
    const NormSpec q_norm{.key = at / "q_norm", .eps = c.eps, .weight_bias = 1};
    const NormSpec k_norm{.key = at / "k_norm", .eps = c.eps, .weight_bias = 1};
    const bool gate = in.config.get<bool>("attn_output_gate", true);
    return {.key = at,
            .heads = c.heads,
            .kv_heads = c.kv_heads,
            .head_dim = c.head_dim,
            .rope = r,
            .q_norm = q_norm,
            .k_norm = k_norm,
            .interleaved_gate = gate};
}

}  // namespace

ModelSpec qwen_hybrid(const ArchInput& in, double theta_default) {
    ModelSpec m = decoder(in);
    const Common c = common(in);
    m.final_norm.weight_bias = 1;
    const auto full = full_attention_layers(in, c.layers);
    for (int i = 0; i < c.layers; ++i) {
        BlockSpec block;
        block.key = in.prefix / "layers" / i;
        NormSpec norm = m.final_norm;
        norm.key = block.key / "input_layernorm";
        block.mixer_norm = norm;
        norm.key = block.key / "post_attention_layernorm";
        block.mlp_norm = norm;
        if (full[static_cast<size_t>(i)])
            block.mixer = gated_attention(in, c, block.key / "self_attn", theta_default);
        else
            block.mixer = qwen_delta_net(in, block.key / "linear_attn", c.eps);
        m.blocks.push_back(std::move(block));
    }
    return m;
}

MoeSpec qwen_experts(const ArchInput& in, const Key& at) {
    const HfConfig& c = in.config;
    MoeSpec moe = experts(in, at, size(c, "moe_intermediate_size"));
    add_shared_expert(moe, at / "shared_expert", size(c, "shared_expert_intermediate_size", 512));
    moe.shared_gate = at / "shared_expert_gate";
    return moe;
}

}  // namespace exl3
