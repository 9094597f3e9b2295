#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arch/skeleton.h"

namespace exl3::arch {
namespace {

// True for the layers with attention; the others are short convolutions.
std::vector<bool> attention_layers(const ArchInput& in, int layers) {
    const HfConfig& c = in.config;
    const auto types = c.list<std::string>("layer_types");
    const auto listed = c.list<int>("full_attn_idxs");  // of older files
    if (!types.empty() && static_cast<int>(types.size()) < layers)
        c.fail("layer_types", fmt::format("found {} entries, needed {}", types.size(), layers));
    std::vector<bool> attention;
    for (int i = 0; i < layers; ++i) {
        if (types.empty()) {
            attention.push_back(listed.empty()
                                    ? (i + 1) % 4 == 0
                                    : std::find(listed.begin(), listed.end(), i) != listed.end());
            continue;
        }
        const std::string& type = types[static_cast<size_t>(i)];
        if (type != "full_attention" && type != "conv")
            c.fail("layer_types", fmt::format("found '{}', needed full_attention or conv", type));
        attention.push_back(type == "full_attention");
    }
    return attention;
}

AttentionSpec lfm2_attention(const Common& c, const Key& at, const RopeSpec& r) {
    const NormSpec q_norm{.key = at / "q_layernorm", .eps = c.eps};
    const NormSpec k_norm{.key = at / "k_layernorm", .eps = c.eps};
    return {.key = at,
            .heads = c.heads,
            .kv_heads = c.kv_heads,
            .head_dim = c.head_dim,
            .rope = r,
            .q_norm = q_norm,
            .k_norm = k_norm,
            .out = "out_proj"};
}

// Everything but the MLPs.
ModelSpec lfm2_mixers(const ArchInput& in, const Common& c) {
    ModelSpec m = decoder(in, /*tied_default=*/true);
    if (in.config.has("tie_embedding")) m.tied_head = in.config.get<bool>("tie_embedding");
    m.final_norm.key = first_standing(in, in.prefix, {"embedding_norm", "norm"});
    RopeSpec r = rope(in, RopeStyle::neox, c.head_dim);
    if (!in.config.has("rope_theta") && !in.config.has("rope_parameters.rope_theta")) r.theta = 1e6;
    const int kernel = conv_kernel(in.config, "conv_L_cache", 3);
    const auto attention = attention_layers(in, c.layers);
    for (int i = 0; i < c.layers; ++i) {
        BlockSpec block;
        block.key = in.prefix / "layers" / i;
        block.mixer_norm = NormSpec{.key = block.key / "operator_norm", .eps = c.eps};
        block.mlp_norm = NormSpec{.key = block.key / "ffn_norm", .eps = c.eps};
        if (attention[static_cast<size_t>(i)])
            block.mixer = lfm2_attention(c, block.key / "self_attn", r);
        else
            block.mixer = ShortConvSpec{.key = block.key / "conv", .kernel = kernel};
        m.blocks.push_back(std::move(block));
    }
    return m;
}

const MlpNames kNames{.gate = "w1", .up = "w3", .down = "w2"};

// Dense LFM2 states the width before it is cut to two thirds and rounded up.
int adjusted_width(const HfConfig& c, int width) {
    if (!c.get<bool>("block_auto_adjust_ff_dim", true)) return width;
    const auto two_thirds = static_cast<double>(int64_t{2} * width / 3);
    const int multiple = size(c, "block_multiple_of", 256);
    const double wanted = std::floor(c.get<double>("block_ffn_dim_multiplier", 1) * two_thirds);
    if (!(wanted > 0) || wanted > 1 << 24)
        c.fail("block_ffn_dim_multiplier", fmt::format("makes a width of {}", wanted));
    return (static_cast<int>(wanted) + multiple - 1) / multiple * multiple;
}

}  // namespace

// LFM2: short convolutions with attention layers in between.
ModelSpec lfm2(const ArchInput& in) {
    const HfConfig& c = in.config;
    const Common sizes = common(in);
    ModelSpec m = lfm2_mixers(in, sizes);
    const std::string_view key = c.has("block_ff_dim") ? "block_ff_dim" : "intermediate_size";
    const int inner = adjusted_width(c, size(c, key));
    for (BlockSpec& block : m.blocks)
        block.mlp =
            GatedMlpSpec{.key = block.key / "feed_forward", .inner = inner, .names = kNames};
    return m;
}

// LFM2 MoE: the same with sigmoid-routed experts after the first layers.
ModelSpec lfm2_moe(const ArchInput& in) {
    const HfConfig& c = in.config;
    const Common sizes = common(in);
    ModelSpec m = lfm2_mixers(in, sizes);
    const int dense = c.get<int>("num_dense_layers", 2), inner = size(c, "moe_intermediate_size");
    for (int i = 0; i < sizes.layers; ++i) {
        BlockSpec& block = m.blocks[static_cast<size_t>(i)];
        const Key at = block.key / "feed_forward";
        if (i < dense) {
            block.mlp =
                GatedMlpSpec{.key = at, .inner = size(c, "intermediate_size"), .names = kNames};
            continue;
        }
        MoeSpec moe = experts(in, at, inner);
        moe.names = kNames;
        std::vector<std::string> bias;
        if (c.get<bool>("use_expert_bias", true)) bias.push_back(at / "expert_bias");
        sigmoid_router(in, moe, bias);
        block.mlp = std::move(moe);
    }
    return m;
}

}  // namespace exl3::arch
