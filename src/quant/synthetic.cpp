#include "quant/synthetic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <map>

#include "arch/arch.h"
#include "base/half.h"
#include "base/random.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

struct NamedConfig {
    const char* name;
    const char* json;  // config.json of the published model, what matters for speed
    int layers = 0;    // only so many of them; 0: all
};

HfConfig config_of(const NamedConfig& named, const std::string& file) {
    Json json = parse_json(named.json, file).value();
    if (named.layers > 0) json["num_hidden_layers"] = named.layers;
    return {json, file};
}

constexpr char kQwen3Next[] = R"({"architectures": ["Qwen3NextForCausalLM"],
        "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4,
        "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "moe_intermediate_size": 512,
        "num_experts": 512, "num_experts_per_tok": 10, "shared_expert_intermediate_size": 512,
        "vocab_size": 151936, "max_position_embeddings": 262144, "rms_norm_eps": 1e-6,
        "rope_theta": 10000000.0, "partial_rotary_factor": 0.25})";

constexpr NamedConfig kConfigs[] = {
    {"llama1b", R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
        "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0})"},
    {"llama8b", R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0})"},
    {"llama70b", R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 8192,
        "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0})"},
    {"qwen30b-a3b", R"({"architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 2048,
        "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
        "num_experts_per_tok": 8, "norm_topk_prob": true, "decoder_sparse_step": 1,
        "mlp_only_layers": [], "vocab_size": 151936, "max_position_embeddings": 40960,
        "rms_norm_eps": 1e-6, "rope_theta": 1000000.0})"},
    {"qwen3-next-80b", kQwen3Next},
    // Its first eight layers, for machines without 40 GB: two of attention, six delta nets.
    {"qwen3-next-8l", kQwen3Next, 8},
};

/// The bytes behind the tensors: a region for each kind of content, as long as the longest tensor
/// that uses it.
class Regions {
public:
    using Fill = std::function<void(std::byte* data, size_t bytes)>;
    /// The region of that name grows to hold `bytes`.
    void need(const std::string& name, uint64_t bytes, Fill fill) {
        Region& r = regions_[name];
        r.bytes = std::max(r.bytes, bytes);
        r.fill = std::move(fill);
    }
    std::shared_ptr<const MappedFile> allocate() {
        uint64_t total = 0;
        for (auto& [name, r] : regions_) {
            r.offset = total;
            total += (r.bytes + 63) / 64 * 64;
        }
        return MappedFile::in_memory(total, [&](std::byte* data) {
            for (auto& [name, r] : regions_) r.fill(data + r.offset, r.bytes);
        });
    }
    uint64_t offset(const std::string& name) const { return regions_.at(name).offset; }

private:
    struct Region {
        uint64_t offset = 0, bytes = 0;
        Fill fill;
    };
    std::map<std::string, Region> regions_;
};

// Random content is drawn for the first MiB and then repeated: speed does not depend on it, and an
// embedding has half a billion numbers.
Regions::Fill random_fill(std::function<uint16_t(Random&)> draw) {
    return [draw = std::move(draw)](std::byte* data, size_t bytes) {
        const size_t first = std::min(bytes, size_t{1} << 20);
        Random random(1);
        for (size_t i = 0; i + 1 < first; i += 2) {
            const uint16_t word = draw(random);
            std::memcpy(data + i, &word, sizeof word);
        }
        for (size_t done = first; done < bytes; done += std::min(done, bytes - done))
            std::memcpy(data + done, data, std::min(done, bytes - done));
    };
}

Regions::Fill any_bits() {
    return random_fill([](Random& r) { return static_cast<uint16_t>(r.next()); });
}
// f16 values of one magnitude and random sign.
Regions::Fill signs_of(float magnitude) {
    return random_fill([=](Random& r) { return to_f16(r.coin() ? magnitude : -magnitude).bits; });
}
Regions::Fill ones() {
    return random_fill([](Random&) { return to_bf16(1).bits; });
}
// bf16 in (-1, 1)
Regions::Fill uniform() {
    return random_fill(
        [](Random& r) { return to_bf16(static_cast<float>(2 * r.uniform() - 1)).bits; });
}

class Builder {
public:
    Builder(const NamedConfig& named, const SyntheticOptions& o)
        : name_(fmt::format("synthetic {}", named.name)), config_(config_of(named, name_)), o_(o) {}

    Checkpoint build() {
        const ModelSpec spec = describe(config_, [](std::string_view tensor) {
            return tensor == "lm_head.trellis" || tensor == "model.embed_tokens.weight";
        });
        plain((spec.embed_key / "weight").str(), {spec.vocab, spec.hidden}, "uniform", uniform());
        for (const BlockSpec& block : spec.blocks) add_block(block, spec.hidden);
        norm(spec.final_norm, spec.hidden);
        matrix(spec.head, o_.head_bits);
        auto bytes = regions_.allocate();
        for (size_t i = 0; i < infos_.size(); ++i) infos_[i].offset = regions_.offset(used_[i]);
        return Checkpoint::in_memory(
            name_, config_, SafetensorsFile::over(name_, std::move(infos_), std::move(bytes)));
    }

private:
    void add_block(const BlockSpec& block, int hidden) {
        for (const auto* n :
             {&block.mixer_norm, &block.mixer_post_norm, &block.mlp_norm, &block.mlp_post_norm})
            if (*n) norm(**n, hidden);
        if (const auto* a = std::get_if<AttentionSpec>(&block.mixer)) {
            if (a->q_norm) norm(*a->q_norm, a->head_dim);
            if (a->k_norm) norm(*a->k_norm, a->head_dim);
        }
        if (const auto* d = std::get_if<DeltaNetSpec>(&block.mixer)) add_delta_net(*d, hidden);
        if (const auto* m = std::get_if<Mamba2Spec>(&block.mixer)) add_mamba2(*m);
        if (const auto* c = std::get_if<ShortConvSpec>(&block.mixer))
            add_uniform(c->key / "conv.weight", {hidden, 1, c->kernel});
        if (const auto* m = std::get_if<MoeSpec>(&block.mlp)) {
            add_uniform(m->router.key / "weight", {m->router.experts, hidden});
            if (!m->shared_gate.empty()) add_uniform(m->shared_gate / "weight", {1, hidden});
        }
        for (const LinearSpec& l : linears_of(block, hidden)) matrix(l, o_.bits);
    }

    void add_delta_net(const DeltaNetSpec& d, int hidden) {
        for (const std::string& name : {d.b, d.a})
            add_uniform(d.key / name / "weight", {d.value_heads, hidden});
        add_uniform(d.key / d.conv / "weight", {d.conv_channels(), 1, d.kernel});
        for (const char* name : {"A_log", "dt_bias"}) add_uniform(d.key / name, {d.value_heads});
        norm({.key = d.key / d.norm}, d.value_dim);
    }
    void add_mamba2(const Mamba2Spec& m) {
        add_uniform(m.key / "conv1d.weight", {m.conv_channels(), 1, m.kernel});
        for (const char* name : {"A_log", "dt_bias", "D"}) add_uniform(m.key / name, {m.heads});
        norm({.key = m.key / "norm"}, m.inner());
    }

    void add_uniform(const Key& name, std::vector<int64_t> dims) {
        plain(name.str(), std::move(dims), "uniform", uniform());
    }
    void norm(const NormSpec& n, int dim) {
        if (!n.key.empty()) plain((n.key / "weight").str(), {dim}, "ones", ones());
    }
    void plain(std::string name, std::vector<int64_t> dims, const char* region,
               const Regions::Fill& fill) {
        add(std::move(name), DType::bf16, std::move(dims), region, fill);
    }

    // With scales of 1 and 1/sqrt(k), outputs are about as large as inputs.
    void matrix(const LinearSpec& l, int bits) {
        const int64_t k = (int64_t{l.in} + 127) / 128 * 128, n = (int64_t{l.out} + 127) / 128 * 128;
        const auto name = [&](const char* part) { return (l.key / part).str(); };
        add(name("trellis"), DType::i16, {k / kTile, n / kTile, tile_words(bits)}, "bits",
            any_bits());
        add(name("suh"), DType::f16, {k}, "signs", signs_of(1));
        const float scale = 1 / std::sqrt(static_cast<float>(k));
        add(name("svh"), DType::f16, {n}, fmt::format("signs {}", k), signs_of(scale));
        if (o_.codebook.kind == CodebookKind::three_inst) return;
        add(name(name_of(o_.codebook.kind).data()), DType::i32, {}, "marker",
            [m = o_.codebook.multiplier](std::byte* data, size_t) { std::memcpy(data, &m, 4); });
    }

    void add(std::string name, DType dtype, std::vector<int64_t> dims, const std::string& region,
             const Regions::Fill& fill) {
        TensorInfo t{.name = std::move(name), .dtype = dtype, .dims = std::move(dims)};
        t.bytes = static_cast<uint64_t>(t.numel()) * size_of(dtype);
        regions_.need(region, t.bytes, fill);
        infos_.push_back(std::move(t));
        used_.push_back(region);
    }

    std::string name_;
    HfConfig config_;
    SyntheticOptions o_;
    Regions regions_;
    std::vector<TensorInfo> infos_;
    std::vector<std::string> used_;  // region of each tensor
};

}  // namespace

std::vector<std::string> synthetic_models() {
    std::vector<std::string> names;
    for (const NamedConfig& c : kConfigs) names.emplace_back(c.name);
    return names;
}

Checkpoint synthetic_checkpoint(const SyntheticOptions& o) {
    EXL3_CHECK(o.bits >= 1 && o.bits <= 8 && o.head_bits >= 1 && o.head_bits <= 8);
    for (const NamedConfig& c : kConfigs)
        if (o.model == c.name) return Builder(c, o).build();
    throw Error(Errc::invalid_argument, {},
                fmt::format("synthetic model '{}': needed one of {}", o.model,
                            fmt::join(synthetic_models(), ", ")));
}

}  // namespace exl3
