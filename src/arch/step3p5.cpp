#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "arch/skeleton.h"

namespace exl3::arch {
namespace {

// Entry i of a list of numbers, one for each layer; `otherwise` where there is no list.
double entry(const HfConfig& c, std::string_view key, size_t i, double otherwise) {
    if (!c.has(key)) return otherwise;
    if (!c.is_list(key)) return c.get<double>(key);
    const auto list = c.list<double>(key);
    if (i >= list.size())
        c.fail(key, fmt::format("found {} entries, needed more than {}", list.size(), i));
    return list[i];
}

// "1,2,3": the layers with experts. Absent: all but the first.
std::set<int> expert_layers(const HfConfig& c, size_t layers) {
    constexpr std::string_view kKey = "moe_layers_enum";
    std::set<int> found;
    if (!c.has(kKey)) {
        for (size_t i = 1; i < layers; ++i) found.insert(static_cast<int>(i));
        return found;
    }
    const std::string text = c.get<std::string>(kKey);
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        const std::string number = text.substr(at, end - at);
        if (number.empty() || number.size() > 6 ||
            number.find_first_not_of("0123456789 ") != std::string::npos)
            c.fail(kKey, fmt::format("found '{}', needed layer numbers and commas", text));
        found.insert(std::atoi(number.c_str()));
        at = end + 1;
    }
    return found;
}

// Rotation of layer i: base and rotated part from lists, scaling only for some kinds of layers.
RopeSpec rotation(const ArchInput& in, size_t layer, int head_dim, bool sliding) {
    const HfConfig& c = in.config;
    Json own = {{"rope_theta", entry(c, "rope_theta", layer, 10000)},
                {"partial_rotary_factor", entry(c, "partial_rotary_factors", layer, 1)}};
    const auto scaled = c.list<std::string>("yarn_only_types");
    const std::string kind = sliding ? "sliding_attention" : "full_attention";
    if (scaled.empty() ? sliding : std::find(scaled.begin(), scaled.end(), kind) == scaled.end())
        own["rope_scaling"] = nullptr;
    ArchInput one = in;
    one.config = c.with(own);
    return rope(one, RopeStyle::neox, head_dim);
}

}  // namespace

// Step 3.5: norms that store weight - 1, head norms, a sigmoid gate on each head; layers with a
// window have head counts and rotation of their own. Experts by sigmoid beside a shared one, gates
// and ups clamped by layer.
ModelSpec step3p5(const ArchInput& given) {
    ArchInput in = with_defaults(given, {{"rms_norm_eps", 1e-5}, {"intermediate_size", 1}});
    const Json theta =
        in.config.json().contains("rope_theta") ? in.config.json().at("rope_theta") : Json();
    ArchInput plain = in;  // for what reads one base for all layers
    if (theta.is_array())
        plain.config = in.config.with({{"rope_theta", nullptr}, {"rope_scaling", nullptr}});
    const HfConfig& c = in.config;
    if (c.has("num_attention_groups"))
        plain.config =
            plain.config.with({{"num_key_value_heads", size(c, "num_attention_groups")}});
    ModelSpec m = llama_like(plain);
    m.final_norm.weight_bias = 1;
    if (c.get<bool>("use_qk_norm", true)) add_head_norms(m);
    const auto w = windows(in, static_cast<int>(m.blocks.size()), c.get<int>("sliding_window", 512),
                           [](int) { return false; });
    const auto other = c.child("attention_other_setting");
    const auto with_experts = expert_layers(c, m.blocks.size());
    const bool gated = c.get<bool>("use_head_wise_attn_gate", true);
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        BlockSpec& block = m.blocks[i];
        block.mixer_norm->weight_bias = block.mlp_norm->weight_bias = 1;
        AttentionSpec& a = attention_of(block);
        a.window = w[i];
        if (w[i] > 0 && other) {
            a.heads = size(*other, "num_attention_heads", a.heads);
            a.kv_heads = size(*other, "num_attention_groups", a.kv_heads);
            a.head_dim = size(*other, "head_dim", a.head_dim);
        }
        a.rope = rotation(in, i, a.head_dim, w[i] > 0);
        if (gated) a.gate = a.key / "g_proj";
        GatedMlpSpec& dense = mlp_of(block);
        dense.limit = static_cast<float>(entry(c, "swiglu_limits_shared", i, 0));
        dense.clamp = ActClamp::after;
        if (!with_experts.contains(static_cast<int>(i))) continue;

        const Key at = block.key / "moe";
        const int inner = size(c, "moe_intermediate_size");
        MoeSpec moe = experts(in, at, inner);
        sigmoid_router(in, moe, {at / "router_bias"});
        if (const auto act = c.get<std::string>("moe_router_activation", "sigmoid");
            act != "sigmoid")
            c.fail("moe_router_activation", "found '" + act + "', needed sigmoid");
        moe.router.scale = c.get<float>("moe_router_scaling_factor", 3.0f);
        moe.router.normalise = c.get<bool>("norm_expert_weight", true);
        moe.limit = static_cast<float>(entry(c, "swiglu_limits", i, 0));
        moe.clamp = ActClamp::after;
        moe.stack = ExpertStack{.gate = at / "gate_proj",
                                .up = at / "up_proj",
                                .down = at / "down_proj",
                                .bare = false};
        GatedMlpSpec shared = dense;
        shared.key = block.key / "share_expert";
        shared.inner = size(c, "share_expert_dim");
        shared.shared_input = at / "input";
        moe.shared = shared;
        block.mlp = moe;
    }
    return m;
}

// Step 3.7: the same with head norms always, whatever use_qk_norm says. Vision is left alone.
ModelSpec step3p7(const ArchInput& given) {
    ArchInput in = given;
    in.config = given.config.with({{"use_qk_norm", true}});
    return step3p5(in);
}

}  // namespace exl3::arch
