#include <fmt/format.h>

#include <algorithm>

#include "arch/skeleton.h"

namespace exl3::arch {
namespace {

// The layers with experts: mlp_layer_types, else all but mlp_only_layers.
std::vector<bool> sparse(const ArchInput& in, size_t layers) {
    const HfConfig& c = in.config;
    if (c.has("mlp_layer_types")) return sparse_layers(in, layers, 0);
    auto dense = c.list<int>("mlp_only_layers");
    if (!c.has("mlp_only_layers")) dense = {0};
    const int step = size(c, "decoder_sparse_step", 1);
    std::vector<bool> v;
    for (int i = 0; i < static_cast<int>(layers); ++i)
        v.push_back((i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end());
    return v;
}

}  // namespace

// Laguna: head counts by layer, head norms, a softplus gate on each head, rotation by kind of
// layer; experts by sigmoid. EXL3 files hold the experts' up matrices divided by 128.
ModelSpec laguna(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    add_head_norms(m);
    const HfConfig& c = in.config;
    const auto heads = c.list<int>("num_attention_heads_per_layer");
    if (!heads.empty() && heads.size() < m.blocks.size())
        c.fail("num_attention_heads_per_layer",
               fmt::format("found {} entries, needed {}", heads.size(), m.blocks.size()));
    const bool gated = c.has("gating");
    if (gated && c.json().at("gating").is_string() && c.get<std::string>("gating") != "per-head")
        c.fail("gating", "found another value than per-head");
    const auto w = windows(in, static_cast<int>(m.blocks.size()), c.get<int>("sliding_window", 0),
                           [](int) { return false; });
    const int inner = size(c, "moe_intermediate_size");
    const auto has_experts = sparse(in, m.blocks.size());
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        AttentionSpec& a = attention_of(m.blocks[i]);
        if (!heads.empty()) a.heads = heads[i];
        a.window = w[i];
        a.rope = rope(in, RopeStyle::neox, a.head_dim,
                      w[i] > 0 ? "sliding_attention" : "full_attention");
        if (w[i] > 0) a.rope = RopeSpec{.dims = a.rope->dims, .theta = a.rope->theta};
        a.gate = a.key / "g_proj";
        a.gate_act = GateAct::softplus;
        if (!has_experts[i]) continue;
        const Key at = m.blocks[i].key / "mlp";
        MoeSpec moe = experts(in, at, inner);
        sigmoid_router(
            in, moe, {at / "experts.e_score_correction_bias", at / "gate.e_score_correction_bias"});
        moe.router.scale = c.get<float>("moe_routed_scaling_factor", 1.0f);
        moe.up_divisor = 128;
        const Key plural = at / "shared_experts";
        const bool is_plural =
            in.has((plural / "up_proj.weight").str()) || in.has((plural / "up_proj.trellis").str());
        add_shared_expert(moe, is_plural ? plural : at / "shared_expert",
                          size(c, "shared_expert_intermediate_size"));
        m.blocks[i].mlp = moe;
    }
    return m;
}

}  // namespace exl3::arch
