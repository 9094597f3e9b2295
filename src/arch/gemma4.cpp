#include <fmt/format.h>

#include <cmath>

#include "arch/skeleton.h"
#include "base/half.h"

namespace exl3::arch {
namespace {

struct Gemma4 {
    const ArchInput& in;
    Common size_;
    std::vector<std::string> kinds;  // of each layer
    int shared = 0;                  // layers at the end that read the cache of others

    bool sliding(int layer) const {
        return kinds[static_cast<size_t>(layer)] == "sliding_attention";
    }
    NormSpec norm(const Key& key) const { return {.key = key, .eps = size_.eps}; }
    // per_layer_config has the last word on what it names.
    int own(int layer, std::string_view key, int otherwise) const {
        if (const auto all = in.config.child("per_layer_config"))
            if (const auto one = all->child(std::to_string(layer)))
                if (one->has(key)) return size(*one, key);
        return otherwise;
    }
    int kv_source(int layer) const;
    AttentionSpec attention(int layer) const;
    MlpSpec mlp(int layer) const;
    std::optional<PerLayerInputSpec> per_layer_input(int layer, int vocab) const;
};

// The last layer of the same kind that has keys and values of its own; -1: this one.
int Gemma4::kv_source(int layer) const {
    const int first_shared = size_.layers - shared;
    if (layer < first_shared) return -1;
    for (int i = first_shared - 1; i >= 0; --i)
        if (kinds[static_cast<size_t>(i)] == kinds[static_cast<size_t>(layer)]) return i;
    in.config.fail("num_kv_shared_layers",
                   fmt::format("leaves no layer of kind '{}' with keys and values",
                               kinds[static_cast<size_t>(layer)]));
}

AttentionSpec Gemma4::attention(int layer) const {
    const HfConfig& c = in.config;
    const Key at = in.prefix / "layers" / layer / "self_attn";
    const bool wide = !sliding(layer);
    AttentionSpec a{.key = at, .heads = size_.heads, .kv_heads = size_.kv_heads};
    a.heads = own(layer, "num_attention_heads", a.heads);
    a.head_dim =
        own(layer, "head_dim",
            wide && !c.has("per_layer_config") ? size(c, "global_head_dim", 512) : size_.head_dim);
    a.values_from_keys = wide && c.get<bool>("attention_k_eq_v", false);
    if (wide && a.values_from_keys) a.kv_heads = size(c, "num_global_key_value_heads", a.kv_heads);
    a.kv_heads = own(layer, "num_key_value_heads", a.kv_heads);
    if (a.heads % a.kv_heads != 0)
        c.fail("num_key_value_heads",
               fmt::format("found {}, needed a divisor of {} heads", a.kv_heads, a.heads));
    if (a.head_dim > 1024) c.fail("global_head_dim", "needs to be at most 1024");
    a.scale = 1;
    a.window = wide ? 0 : c.get<int>("sliding_window", 512);
    a.rope = rope(in, RopeStyle::neox, a.head_dim, kinds[static_cast<size_t>(layer)]);
    a.q_norm = norm(at / "q_norm");
    a.k_norm = norm(at / "k_norm");
    a.v_norm = norm({});
    a.kv_layer = kv_source(layer);
    return a;
}

MlpSpec Gemma4::mlp(int layer) const {
    const HfConfig& c = in.config;
    const Key at = in.prefix / "layers" / layer;
    const Act act = activation(in, c.has("hidden_activation") ? "hidden_activation" : "hidden_act");
    const bool twice = kv_source(layer) >= 0 && c.get<bool>("use_double_wide_mlp", false);
    const GatedMlpSpec dense{.key = at / "mlp", .inner = size_.inner * (twice ? 2 : 1), .act = act};
    if (!c.get<bool>("enable_moe_block", false)) return dense;
    MoeSpec moe = experts(in, at, size(c, "moe_intermediate_size"));
    moe.key = at / "experts";
    moe.router.key = at / "router.proj";
    moe.router.expert_scale = at / "router.per_expert_scale";
    moe.router.normalise = true;
    moe.act = act;
    keep_stacked(moe);
    return DualMlpSpec{.dense = dense,
                       .moe = moe,
                       .dense_norm = norm(at / "pre_feedforward_layernorm"),
                       .dense_post_norm = norm(at / "post_feedforward_layernorm_1"),
                       .moe_norm = norm(at / "pre_feedforward_layernorm_2"),
                       .moe_post_norm = norm(at / "post_feedforward_layernorm_2"),
                       .router_scale = at / "router.scale",
                       .eps = size_.eps};
}

std::optional<PerLayerInputSpec> Gemma4::per_layer_input(int layer, int vocab) const {
    const int dim = in.config.get<int>("hidden_size_per_layer_input", 0);
    if (dim == 0) return std::nullopt;
    const Key at = in.prefix / "layers" / layer;
    return PerLayerInputSpec{.gate = at / "per_layer_input_gate",
                             .out = at / "per_layer_projection",
                             .norm = norm(at / "post_per_layer_input_norm"),
                             .table = in.prefix / "embed_tokens_per_layer",
                             .projection = in.prefix / "per_layer_model_projection",
                             .projection_norm = norm(in.prefix / "per_layer_projection_norm"),
                             .dim = size(in.config, "hidden_size_per_layer_input"),
                             .layers = size_.layers,
                             .layer = layer,
                             .vocab = size(in.config, "vocab_size_per_layer_input", vocab)};
}

// Five sliding layers, then a full one; the last is always full.
std::vector<std::string> layer_kinds(const HfConfig& c, int layers) {
    auto kinds = c.list<std::string>("layer_types");
    if (!kinds.empty() && static_cast<int>(kinds.size()) < layers)
        c.fail("layer_types", fmt::format("found {} entries, needed {}", kinds.size(), layers));
    for (int i = static_cast<int>(kinds.size()); i < layers; ++i)
        kinds.emplace_back((i + 1) % 6 == 0 || i + 1 == layers ? "full_attention"
                                                               : "sliding_attention");
    for (const std::string& kind : kinds)
        if (kind != "full_attention" && kind != "sliding_attention")
            c.fail("layer_types",
                   fmt::format("found '{}', needed full_attention or sliding_attention", kind));
    return kinds;
}

}  // namespace

// Gemma 4, the text part: sandwich norms with plain weights, head norms on q, k and v; full layers
// have wider heads, may take values from the keys, and rotate a share of them. Options: experts
// beside the dense MLP, inputs of each layer made of the token, layers that share a cache.
ModelSpec gemma4(const ArchInput& given) {
    const ArchInput in = with_defaults(given, {{"rms_norm_eps", 1e-6}, {"head_dim", 256}});
    const HfConfig& c = in.config;
    ModelSpec m = decoder(in, /*tied_default=*/true);
    // The reference rounds this factor to bf16.
    m.embed_scale = to_float(to_bf16(std::sqrt(static_cast<float>(m.hidden))));
    m.logit_softcap = c.get<float>("final_logit_softcapping", 0.0f);
    Gemma4 g{.in = in, .size_ = common(in), .kinds = {}};
    g.kinds = layer_kinds(c, g.size_.layers);
    g.shared = c.get<int>("num_kv_shared_layers", 0);
    if (g.shared < 0 || g.shared >= g.size_.layers)
        c.fail("num_kv_shared_layers",
               fmt::format("found {}, needed 0 to {}", g.shared, g.size_.layers - 1));
    for (int i = 0; i < g.size_.layers; ++i) {
        const Key at = in.prefix / "layers" / i;
        BlockSpec block;
        block.key = at;
        block.mixer_norm = g.norm(at / "input_layernorm");
        block.mixer = g.attention(i);
        block.mixer_post_norm = g.norm(at / "post_attention_layernorm");
        block.mlp = g.mlp(i);
        if (!std::holds_alternative<DualMlpSpec>(block.mlp))
            block.mlp_norm = g.norm(at / "pre_feedforward_layernorm");
        block.mlp_post_norm = g.norm(at / "post_feedforward_layernorm");
        block.per_layer_input = g.per_layer_input(i, m.vocab);
        if (const std::string scalar = at / "layer_scalar"; in.has(scalar)) block.scalar = scalar;
        m.blocks.push_back(std::move(block));
    }
    return m;
}

}  // namespace exl3::arch
