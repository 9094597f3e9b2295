#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "arch/skeleton.h"

namespace exl3::arch {
namespace {

enum class Kind { mamba, attention, mlp, moe };

Kind kind_named(const HfConfig& c, std::string_view key, const std::string& name) {
    if (name == "M" || name == "mamba" || name == "mamba2" || name == "linear_attention")
        return Kind::mamba;
    if (name == "*" || name == "attention" || name == "full_attention") return Kind::attention;
    if (name == "-" || name == "mlp") return Kind::mlp;
    if (name == "E" || name == "moe") return Kind::moe;
    c.fail(key,
           fmt::format("found '{}', needed M (mamba), * (attention), - (mlp) or E (moe)", name));
}

// One kind per layer: a pattern of letters, or a list of names in newer files. Layers beyond
// num_hidden_layers are draft heads.
std::vector<Kind> layer_kinds(const ArchInput& in) {
    const HfConfig& c = in.config;
    std::vector<Kind> kinds;
    std::string_view key = "hybrid_override_pattern";
    if (c.has(key)) {
        for (const char letter : c.get<std::string>(key))
            kinds.push_back(kind_named(c, key, std::string(1, letter)));
    } else {
        key = c.has("layers_block_type") ? "layers_block_type" : "layer_types";
        for (const std::string& name : c.list<std::string>(key))
            kinds.push_back(kind_named(c, key, name));
    }
    const int layers = size(c, "num_hidden_layers", static_cast<int>(kinds.size()));
    if (static_cast<int>(kinds.size()) < layers)
        c.fail(key, fmt::format("found {} layers, needed {}", kinds.size(), layers));
    kinds.resize(static_cast<size_t>(layers));
    return kinds;
}

Mamba2Spec mamba(const ArchInput& in, const Key& at, float eps) {
    const HfConfig& c = in.config;
    Mamba2Spec m{.key = at, .eps = eps};
    m.heads = size(c, "mamba_num_heads");
    m.head_dim = size(c, "mamba_head_dim");
    m.groups = size(c, "n_groups");
    m.state = size(c, "ssm_state_size");
    m.kernel = conv_kernel(c, "conv_kernel", 4);
    if (m.heads % m.groups != 0)
        c.fail("n_groups",
               fmt::format("found {}, needed a divisor of {} heads", m.groups, m.heads));
    const auto limit = c.list<double>("time_step_limit");
    m.step_max = std::numeric_limits<float>::infinity();
    if (limit.empty()) return m;
    if (limit.size() != 2 || !(limit[0] >= 0) || !(limit[1] >= limit[0]))
        c.fail("time_step_limit", "needs two numbers, the first from 0 to the second");
    m.step_min = static_cast<float>(limit[0]);
    m.step_max = static_cast<float>(limit[1]);
    return m;
}

Act mlp_activation(const ArchInput& in) {
    return in.config.has("mlp_hidden_act") ? activation(in, "mlp_hidden_act") : Act::relu2;
}

MoeSpec plain_experts(const ArchInput& in, const Key& at) {
    const HfConfig& c = in.config;
    MoeSpec moe = experts(in, at, size(c, "moe_intermediate_size"));
    moe.gated = false;
    moe.act = mlp_activation(in);
    sigmoid_router(in, moe, {at / "gate.e_score_correction_bias"});
    if (in.has((moe.experts / "up_proj").str())) {
        const ExpertStack stack{.up = moe.experts / "up_proj", .down = moe.experts / "down_proj"};
        moe.stack = stack;
    }
    if (const int width = c.get<int>("moe_shared_expert_intermediate_size", 0); width > 0)
        moe.shared = PlainMlpSpec{.key = at / "shared_experts",
                                  .inner = width,
                                  .act = moe.act,
                                  .shared_input = at / "input"};
    if (const int latent = c.get<int>("moe_latent_size", 0); latent > 0) {
        moe.latent = latent;
        moe.latent_in = at / "fc1_latent_proj";
        moe.latent_out = at / "fc2_latent_proj";
    }
    return moe;
}

}  // namespace

// Nemotron-H: every layer is one part behind a norm, of the four kinds. No position encoding.
ModelSpec nemotron_h(const ArchInput& in) {
    const HfConfig& c = in.config;
    const std::vector<Kind> kinds = layer_kinds(in);
    ModelSpec m = decoder(in);
    const Common sizes = common(in);
    m.embed_key = first_standing(in, in.prefix, {"embeddings", "embed_tokens"});
    m.final_norm.key = first_standing(in, in.prefix, {"norm_f", "norm"});
    for (size_t i = 0; i < kinds.size(); ++i) {
        BlockSpec block;
        block.key = in.prefix / "layers" / static_cast<int>(i);
        const Key at = block.key / "mixer";
        const NormSpec norm{.key = block.key / "norm", .eps = sizes.eps};
        const bool mixes = kinds[i] == Kind::mamba || kinds[i] == Kind::attention;
        (mixes ? block.mixer_norm : block.mlp_norm) = norm;
        switch (kinds[i]) {
            case Kind::mamba: block.mixer = mamba(in, at, sizes.eps); break;
            case Kind::attention:
                block.mixer = AttentionSpec{.key = at,
                                            .heads = sizes.heads,
                                            .kv_heads = sizes.kv_heads,
                                            .head_dim = sizes.head_dim};
                break;
            case Kind::mlp:
                block.mlp = PlainMlpSpec{
                    .key = at, .inner = size(c, "intermediate_size"), .act = mlp_activation(in)};
                break;
            case Kind::moe: block.mlp = plain_experts(in, at); break;
        }
        m.blocks.push_back(std::move(block));
    }
    return m;
}

}  // namespace exl3::arch
