#include "arch/skeleton.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/recurrence.h"

namespace exl3 {
namespace {

// Beyond this no model goes; it keeps every product of two sizes inside 64 bits.
constexpr int kMaxSize = 1 << 24;

double positive(const HfConfig& c, std::string_view key, double v) {
    if (!(v > 0) || !std::isfinite(v))
        c.fail(key, fmt::format("found {}, needed a positive number", v));
    return v;
}

// Newer files of hybrid models leave the number to the list of layers.
int layer_count(const HfConfig& c) {
    constexpr std::string_view kList = "layers_block_type";
    if (c.has("num_hidden_layers") || !c.has(kList)) return size(c, "num_hidden_layers");
    return static_cast<int>(c.list<std::string>(kList).size());
}

}  // namespace

int size(const HfConfig& c, std::string_view key, std::optional<int> otherwise) {
    const int v = otherwise ? c.get<int>(key, *otherwise) : c.get<int>(key);
    if (v <= 0 || v > kMaxSize)
        c.fail(key, fmt::format("found {}, needed a size from 1 to {}", v, kMaxSize));
    return v;
}

int conv_kernel(const HfConfig& c, std::string_view key, int otherwise) {
    const int taps = c.get<int>(key, otherwise);
    if (taps < 2 || taps > kMaxConvKernel)
        c.fail(key, fmt::format("found {}, needed 2 to {}", taps, kMaxConvKernel));
    return taps;
}

Key first_standing(const ArchInput& in, const Key& at,
                   std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
        if (in.has((at / name / "weight").str())) return at / name;
    return at / *names.begin();
}

Common common(const ArchInput& in) {
    const HfConfig& c = in.config;
    Common m;
    m.hidden = size(c, "hidden_size");
    m.heads = size(c, "num_attention_heads");
    m.kv_heads = size(c, "num_key_value_heads", m.heads);
    m.layers = layer_count(c);
    if (c.has("intermediate_size")) m.inner = size(c, "intermediate_size");
    // head_dim of 0 means "not given" in files written by older tools.
    m.head_dim = c.find<int>({"head_dim", "attention_head_dim"}).value_or(0);
    if (m.head_dim == 0) m.head_dim = m.hidden / m.heads;
    if (m.head_dim <= 0 || m.head_dim > 1024)
        c.fail("head_dim", fmt::format("found {}, needed 1 to 1024", m.head_dim));
    if (m.layers > 4096)
        c.fail("num_hidden_layers", fmt::format("found {}, needed at most 4096", m.layers));
    if (m.heads % m.kv_heads != 0)
        c.fail("num_key_value_heads",
               fmt::format("found {}, needed a divisor of {} heads", m.kv_heads, m.heads));
    std::string_view eps = "rms_norm_eps";
    for (const std::string_view other : {"layer_norm_eps", "layer_norm_epsilon", "norm_eps"})
        if (!c.has(eps) && c.has(other)) eps = other;
    m.eps = static_cast<float>(positive(c, eps, c.get<double>(eps)));
    return m;
}

ModelSpec decoder(const ArchInput& in, bool tied_default) {
    const HfConfig& c = in.config;
    const Common m = common(in);
    ModelSpec spec;
    spec.hidden = m.hidden;
    spec.vocab = in.whole.has("vocab_size") ? size(in.whole, "vocab_size") : size(c, "vocab_size");
    spec.max_positions = size(c, "max_position_embeddings", 8192);
    spec.embed_key = in.prefix / "embed_tokens";
    spec.final_norm = {.key = in.prefix / "norm", .eps = m.eps};
    spec.head = {.key = in.head,
                 .in = m.hidden,
                 .out = spec.vocab,
                 .tag = "head",
                 .group = "head",
                 .head = true};
    spec.tied_head = in.whole.has("tie_word_embeddings")
                         ? in.whole.get<bool>("tie_word_embeddings")
                         : c.get<bool>("tie_word_embeddings", tied_default);
    return spec;
}

BlockSpec llama_block(const ArchInput& in, const Common& c, int layer) {
    const Key at = in.prefix / "layers" / layer;
    // What can throw comes before the braces: GCC 12 destroys the members built so far twice when a
    // later initialiser of a nested aggregate throws.
    const RopeSpec rope_spec = rope(in, RopeStyle::neox, c.head_dim);
    const Act act = activation(in, "hidden_act");
    if (c.inner == 0) size(in.config, "intermediate_size");
    return {.key = at,
            .mixer_norm = NormSpec{.key = at / "input_layernorm", .eps = c.eps},
            .mixer = AttentionSpec{.key = at / "self_attn",
                                   .heads = c.heads,
                                   .kv_heads = c.kv_heads,
                                   .head_dim = c.head_dim,
                                   .rope = rope_spec},
            .mlp_norm = NormSpec{.key = at / "post_attention_layernorm", .eps = c.eps},
            .mlp = GatedMlpSpec{.key = at / "mlp", .inner = c.inner, .act = act}};
}

ModelSpec llama_like(const ArchInput& in, bool tied_default) {
    ModelSpec spec = decoder(in, tied_default);
    const Common c = common(in);
    for (int i = 0; i < c.layers; ++i) spec.blocks.push_back(llama_block(in, c, i));
    return spec;
}

void add_head_norms(ModelSpec& spec, HeadNormSpan span) {
    for (BlockSpec& block : spec.blocks) {
        AttentionSpec& a = attention_of(block);
        NormSpec norm = spec.final_norm;
        norm.span = span;
        norm.key = a.key / "q_norm";
        a.q_norm = norm;
        norm.key = a.key / "k_norm";
        a.k_norm = norm;
    }
}

void norm_after_only(ModelSpec& spec) {
    for (BlockSpec& block : spec.blocks) {
        NormSpec norm = spec.final_norm;
        norm.key = block.key / "post_attention_layernorm";
        block.mixer_post_norm = norm;
        norm.key = block.key / "post_feedforward_layernorm";
        block.mlp_post_norm = norm;
        block.mixer_norm.reset();
        block.mlp_norm.reset();
    }
}

AttentionSpec& attention_of(BlockSpec& block) {
    return std::get<AttentionSpec>(block.mixer);
}

GatedMlpSpec& mlp_of(BlockSpec& block) {
    return std::get<GatedMlpSpec>(block.mlp);
}

Act activation(const ArchInput& in, std::string_view key) {
    const std::string name = in.config.get<std::string>(key, "silu");
    if (name == "silu" || name == "swish") return Act::silu;
    if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast")
        return Act::gelu_tanh;
    if (name == "gelu") return Act::gelu;
    if (name == "relu2") return Act::relu2;
    in.config.fail(key,
                   fmt::format("found '{}', needed silu, gelu, gelu_pytorch_tanh or relu2", name));
}

std::vector<int> windows(const ArchInput& in, int layers, int window,
                         const std::function<bool(int)>& pattern) {
    const auto types = in.config.list<std::string>("layer_types");
    if (!types.empty() && static_cast<int>(types.size()) < layers)
        in.config.fail("layer_types",
                       fmt::format("found {} entries, needed {}", types.size(), layers));
    std::vector<int> out;
    for (int i = 0; i < layers; ++i) {
        bool sliding = false;
        if (types.empty()) {
            sliding = pattern(i);
        } else if (const std::string& t = types[static_cast<size_t>(i)]; t == "sliding_attention") {
            sliding = true;
        } else if (t != "full_attention") {
            in.config.fail("layer_types", fmt::format("found '{}', needed full_attention or "
                                                      "sliding_attention",
                                                      t));
        }
        out.push_back(sliding ? window : 0);
    }
    return out;
}

namespace {

// Sizes whose products would not fit; each of them alone is a size.
void check_recurrence(const MixerSpec& mixer, const ArchInput& in) {
    const auto check = [&](std::string_view key, int64_t channels, int64_t state) {
        if (channels > kMaxSize || state > (int64_t{1} << 30))
            in.config.fail(
                key, fmt::format("makes {} channels and a state of {} values", channels, state));
    };
    if (const auto* d = std::get_if<DeltaNetSpec>(&mixer)) {
        const int64_t keys = int64_t{d->key_heads} * d->key_dim,
                      values = int64_t{d->value_heads} * d->value_dim;
        check("linear_num_value_heads", std::max(keys, values),
              std::min<int64_t>(values, kMaxSize) * d->key_dim);
        check("linear_num_value_heads", 2 * (keys + values), 0);
    }
    if (const auto* m = std::get_if<Mamba2Spec>(&mixer)) {
        const int64_t inner = int64_t{m->heads} * m->head_dim, keys = int64_t{m->groups} * m->state;
        check("mamba_num_heads", std::max(inner, keys),
              std::min<int64_t>(inner, kMaxSize) * m->state);
        check("mamba_num_heads", 2 * (inner + keys) + m->heads, 0);
    }
}

}  // namespace

void check_spec(const ModelSpec& spec, const ArchInput& in) {
    for (const BlockSpec& block : spec.blocks) {
        check_recurrence(block.mixer, in);
        const auto* a = std::get_if<AttentionSpec>(&block.mixer);
        if (!a) continue;
        if (a->window < 0) in.config.fail("sliding_window", "found a negative window");
        if (a->rope && (a->rope->dims <= 0 || a->rope->dims % 2 || a->rope->dims > a->head_dim))
            in.config.fail("partial_rotary_factor",
                           fmt::format("rotates {} of {} channels, needed an even number of them",
                                       a->rope->dims, a->head_dim));
    }
    // Keys that change what a layer computes. One that this architecture has not read, with a value
    // other than "off", means the file needs something this build does not do.
    struct Rule {
        const char* key;
        double neutral;
    };
    constexpr Rule kRules[] = {
        {"attn_logit_softcapping", 0}, {"final_logit_softcapping", 0}, {"logit_scale", 1},
        {"logits_scaling", 1},         {"embedding_multiplier", 1},    {"attention_multiplier", 0},
        {"residual_multiplier", 1},    {"query_pre_attn_scalar", 0},   {"num_experts", 0},
        {"num_local_experts", 0},      {"n_routed_experts", 0},        {"attention_chunk_size", 0}};
    for (const std::string& key : in.config.unread())
        for (const Rule& rule : kRules) {
            if (key != rule.key) continue;
            const Json& v = in.config.json().at(key);
            if (v.is_number() && v.get<double>() != rule.neutral)
                in.config.fail(key, fmt::format("found {}, which '{}' has no use for here",
                                                v.dump(), spec.architecture));
        }
}

}  // namespace exl3
