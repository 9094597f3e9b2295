#include <fmt/format.h>

#include "arch/skeleton.h"

namespace exl3::arch {
namespace {

// Width of a layer's MLP: two thirds of ffn_mult times hidden, up to a multiple of 256.
int inner_of(const HfConfig& ffn, int hidden) {
    if (ffn.has("intermediate_size")) return size(ffn, "intermediate_size");
    const double mult = ffn.get<double>("ffn_mult");
    if (!(mult > 0) || mult > 64)
        ffn.fail("ffn_mult", fmt::format("found {}, needed up to 64", mult));
    return (static_cast<int>(2 * mult * hidden / 3) + 255) / 256 * 256;
}

void refuse_replacements(const HfConfig& part) {
    for (const char* key : {"replace_with_linear", "sparsify", "num_sink_tokens", "sink"})
        if (part.has(key) && !(part.json().at(key) == false))
            part.fail(key, "is set, which no released checkpoint needs");
}

}  // namespace

// Llama-Nemotron models made by architecture search: the Llama layout with a width, a number of
// key/value heads and the presence of each half of its own for every layer.
ModelSpec deci_lm(const ArchInput& given) {
    const ArchInput in = with_defaults(given, {{"intermediate_size", 1}});
    const HfConfig& c = in.config;
    const Json& configs =
        c.json().contains("block_configs") ? c.json().at("block_configs") : Json();
    ModelSpec m = llama_like(in);
    if (!configs.is_array() || configs.size() < m.blocks.size())
        c.fail("block_configs", fmt::format("needs a list of {} layers", m.blocks.size()));
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        BlockSpec& block = m.blocks[i];
        const HfConfig layer(configs[i], c.file());
        const HfConfig attention =
            layer.child("attention").value_or(HfConfig(Json::object(), c.file()));
        const HfConfig ffn = layer.child("ffn").value_or(HfConfig(Json::object(), c.file()));
        refuse_replacements(attention);
        refuse_replacements(ffn);
        if (attention.get<bool>("no_op", false)) {
            block.mixer = std::monostate();
            block.mixer_norm.reset();
        } else {
            AttentionSpec& a = attention_of(block);
            const int group = size(attention, "n_heads_in_group");
            if (a.heads % group != 0)
                attention.fail(
                    "n_heads_in_group",
                    fmt::format("found {}, needed a divisor of {} heads", group, a.heads));
            a.kv_heads = a.heads / group;
        }
        if (ffn.get<bool>("no_op", false)) {
            block.mlp = std::monostate();
            block.mlp_norm.reset();
        } else {
            mlp_of(block).inner = inner_of(ffn, m.hidden);
        }
    }
    return m;
}

}  // namespace exl3::arch
