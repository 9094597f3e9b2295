#include "import/gguf_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/gguf_rope.h"

namespace exl3 {
namespace {

constexpr PartName kLlamaParts[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"}};
constexpr PartName kGemmaParts[] = {{"ffn_norm", "pre_feedforward_layernorm"},
                                    {"post_attention_norm", "post_attention_layernorm"},
                                    {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr PartName kNormAfterParts[] = {{"post_attention_norm", "post_attention_layernorm"},
                                        {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr PartName kSeedParts[] = {{"post_attention_norm", "post_attention_layernorm"}};
constexpr PartName kGlm4Parts[] = {{"post_attention_norm", "post_self_attn_layernorm"},
                                   {"post_ffw_norm", "post_mlp_layernorm"},
                                   {"ffn_up", "mlp.gate_up_proj"}};
constexpr PartName kPhi3Parts[] = {{"attn_qkv", "self_attn.qkv_proj"},
                                   {"ffn_up", "mlp.gate_up_proj"}};

constexpr PartName kMixtralParts[] = {{"ffn_gate_inp", "block_sparse_moe.gate"},
                                      {"ffn_gate_exps", "block_sparse_moe.experts.*.w1"},
                                      {"ffn_up_exps", "block_sparse_moe.experts.*.w3"},
                                      {"ffn_down_exps", "block_sparse_moe.experts.*.w2"}};
constexpr PartName kExpertParts[] = {{"ffn_gate_inp", "mlp.gate"},
                                     {"ffn_gate_exps", "mlp.experts.*.gate_proj"},
                                     {"ffn_up_exps", "mlp.experts.*.up_proj"},
                                     {"ffn_down_exps", "mlp.experts.*.down_proj"}};

// Tensors that say nothing the config does not say.
constexpr std::string_view kConfigTensors[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                               "rope_factors_short.weight"};

int window_of(const GgufModel& g) {
    return g.get<int>(arch_key(g, "attention.sliding_window"), 0);
}

// Which layers slide: one flag a layer, or a period of which the last layer sees everything.
void add_layer_types(const GgufModel& g, Json& c, int otherwise) {
    const std::string key = arch_key(g, "attention.sliding_window_pattern");
    const int layers = c.at("num_hidden_layers").get<int>();
    std::vector<bool> slides;
    if (g.is_array(key)) {
        for (const int64_t flag : g.integers(key)) slides.push_back(flag != 0);
        if (slides.size() < static_cast<size_t>(layers))
            g.fail(key, fmt::format("found {} entries, needed {}", slides.size(), layers));
    } else {
        const int period = g.get<int>(key, otherwise);
        if (period <= 0) g.fail(key, fmt::format("found {}, needed a period", period));
        for (int i = 0; i < layers; ++i) slides.push_back((i + 1) % period != 0);
    }
    c["layer_types"] = Json::array();
    for (int i = 0; i < layers; ++i)
        c["layer_types"].push_back(slides[static_cast<size_t>(i)] ? "sliding_attention"
                                                                  : "full_attention");
}

// Files of the Llama family that slide a window are Mistral's.
void llama(const GgufModel& g, Json& c) {
    if (const int window = window_of(g); window > 0) {
        c["architectures"] = {"MistralForCausalLM"};
        c["model_type"] = "mistral";
        c["sliding_window"] = window;
    }
}

// How many of the experts each token uses; routers other than a softmax are not told apart here.
void add_experts(const GgufModel& g, Json& c, const char* count) {
    c[count] = g.get<int>(arch_key(g, "expert_count"));
    c["num_experts_per_tok"] = g.get<int>(arch_key(g, "expert_used_count"));
    constexpr int kSoftmax = 1;
    const std::string gating = arch_key(g, "expert_gating_func");
    const std::string scale = arch_key(g, "expert_weights_scale");
    if (g.get<int>(gating, kSoftmax) != kSoftmax) g.fail(gating, "needed 1, a softmax");
    if (g.get<double>(scale, 1.0) != 1) g.fail(scale, "needed 1");
}

void mixtral(const GgufModel& g, Json& c) {
    add_experts(g, c, "num_local_experts");
    if (const int window = window_of(g); window > 0) c["sliding_window"] = window;
}

void qwen3moe(const GgufModel& g, Json& c) {
    add_experts(g, c, "num_experts");
    c["moe_intermediate_size"] = g.get<int>(arch_key(g, "expert_feed_forward_length"));
    c["norm_topk_prob"] = true;
    c["decoder_sparse_step"] = 1;
    c["mlp_only_layers"] = Json::array();
}

void gemma_common(const GgufModel& g, Json& c) {
    c.erase("hidden_act");
    c["hidden_activation"] = "gelu_pytorch_tanh";
    c["sliding_window"] = g.get<int>(arch_key(g, "attention.sliding_window"), 4096);
    // Most files do not say how queries are scaled. Only the 27B models divide by the width of a
    // head as hidden size and heads give it; the others by that of their keys.
    const int hidden = c.at("hidden_size").get<int>(),
              heads = c.at("num_attention_heads").get<int>();
    const int layers = c.at("num_hidden_layers").get<int>();
    const bool largest = layers == (c.at("model_type") == "gemma2" ? 46 : 62);
    c["query_pre_attn_scalar"] = largest ? hidden / heads : c.at("head_dim").get<int>();
    if (const std::string key = arch_key(g, "attention.scale"); g.has(key)) {
        const auto scale = g.get<double>(key);
        if (!(scale > 0)) g.fail(key, fmt::format("found {}, needed a positive number", scale));
        c["query_pre_attn_scalar"] = std::round(1e3 / (scale * scale)) / 1e3;
    }
}

void gemma2(const GgufModel& g, Json& c) {
    gemma_common(g, c);
    c["attn_logit_softcapping"] = g.get<double>(arch_key(g, "attn_logit_softcapping"), 50.0);
    c["final_logit_softcapping"] = g.get<double>(arch_key(g, "final_logit_softcapping"), 30.0);
}

void gemma3(const GgufModel& g, Json& c) {
    gemma_common(g, c);
    c["model_type"] = "gemma3_text";
    c["rope_local_base_freq"] = g.get<double>(arch_key(g, "rope.freq_base_swa"), 10000.0);
    c["sliding_window_pattern"] = 6;
    add_layer_types(g, c, 6);
}

void phi3(const GgufModel& g, Json& c) {
    if (const int window = window_of(g); window > 0) c["sliding_window"] = window;
    add_longrope(g, c);
}

void smollm3(const GgufModel&, Json& c) {
    c["no_rope_layer_interval"] = 4;
}

// OLMo 2; with a window it is OLMo 3.
void olmo2(const GgufModel& g, Json& c) {
    const int window = window_of(g);
    if (window == 0) return;
    c["architectures"] = {"Olmo3ForCausalLM"};
    c["model_type"] = "olmo3";
    c["sliding_window"] = window;
    add_layer_types(g, c, 4);
}

void cohere(const GgufModel& g, Json& c) {
    c["layer_norm_eps"] = g.get<double>(arch_key(g, "attention.layer_norm_epsilon"));
    c.erase("rms_norm_eps");
    c["logit_scale"] = g.get<double>(arch_key(g, "logit_scale"));
    if (c.at("model_type") == "cohere2") {
        c["sliding_window"] = g.get<int>(arch_key(g, "attention.sliding_window"));
        add_layer_types(g, c, 4);
    } else {
        c["use_qk_norm"] = g.find("blk.0.attn_q_norm.weight") != nullptr;
    }
}

void exaone4(const GgufModel& g, Json& c) {
    const int window = window_of(g);
    if (window == 0) {
        c["sliding_window"] = nullptr;
        return;
    }
    c["sliding_window"] = window;
    add_layer_types(g, c, 4);
    c["layer_types"].back() = "full_attention";
}

void arcee(const GgufModel&, Json& c) {
    c["hidden_act"] = "relu2";
}

// Its queries grow with their position; that stands with the RoPE parameters.
void ministral3(const GgufModel& g, Json& c) {
    Json parameters =
        c.contains("rope_scaling") ? c["rope_scaling"] : Json{{"rope_type", "default"}};
    c.erase("rope_scaling");
    parameters["rope_theta"] = c["rope_theta"];
    if (const std::string key = arch_key(g, "attention.temperature_scale"); g.has(key))
        parameters["llama_4_scaling_beta"] = g.get<double>(key);
    c["rope_parameters"] = parameters;
}

constexpr GgufFamily kFamilies[] = {
    {.name = "llama",
     .class_name = "LlamaForCausalLM",
     .model_type = "llama",
     .paired_rows = true,
     .extra = llama},
    {.name = "llama",
     .class_name = "MixtralForCausalLM",
     .model_type = "mixtral",
     .parts = kMixtralParts,
     .experts = true,
     .paired_rows = true,
     .extra = mixtral},
    {.name = "qwen3moe",
     .class_name = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .parts = kExpertParts,
     .experts = true,
     .extra = qwen3moe},
    {.name = "mistral3",
     .class_name = "Ministral3ForCausalLM",
     .model_type = "ministral3",
     .paired_rows = true,
     .extra = ministral3},
    {.name = "qwen2", .class_name = "Qwen2ForCausalLM", .model_type = "qwen2"},
    {.name = "qwen3", .class_name = "Qwen3ForCausalLM", .model_type = "qwen3"},
    {.name = "gemma2",
     .class_name = "Gemma2ForCausalLM",
     .model_type = "gemma2",
     .parts = kGemmaParts,
     .norms_plus_one = true,
     .extra = gemma2},
    {.name = "gemma3",
     .class_name = "Gemma3ForCausalLM",
     .model_type = "gemma3",
     .parts = kGemmaParts,
     .norms_plus_one = true,
     .extra = gemma3},
    {.name = "phi3",
     .class_name = "Phi3ForCausalLM",
     .model_type = "phi3",
     .parts = kPhi3Parts,
     .extra = phi3},
    {.name = "smollm3",
     .class_name = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .paired_rows = true,
     .extra = smollm3},
    {.name = "olmo2",
     .class_name = "Olmo2ForCausalLM",
     .model_type = "olmo2",
     .parts = kNormAfterParts,
     .extra = olmo2},
    {.name = "command-r",
     .class_name = "CohereForCausalLM",
     .model_type = "cohere",
     .extra = cohere},
    {.name = "cohere2",
     .class_name = "Cohere2ForCausalLM",
     .model_type = "cohere2",
     .extra = cohere},
    {.name = "glm4", .class_name = "Glm4ForCausalLM", .model_type = "glm4", .parts = kGlm4Parts},
    {.name = "exaone4",
     .class_name = "Exaone4ForCausalLM",
     .model_type = "exaone4",
     .parts = kNormAfterParts,
     .extra = exaone4},
    {.name = "seed_oss",
     .class_name = "SeedOssForCausalLM",
     .model_type = "seed_oss",
     .parts = kSeedParts},
    {.name = "ernie4_5", .class_name = "Ernie4_5ForCausalLM", .model_type = "ernie4_5"},
    {.name = "arcee",
     .class_name = "ArceeForCausalLM",
     .model_type = "arcee",
     .paired_rows = true,
     .extra = arcee},
};

std::string_view part_in(std::span<const PartName> parts, std::string_view gguf) {
    for (const PartName& p : parts)
        if (p.gguf == gguf) return p.hf;
    return {};
}

// A size that some files give for each layer; one number is all that a dense decoder has.
int one_size(const GgufModel& g, const std::string& key, std::optional<int> otherwise = {}) {
    int v = otherwise.value_or(0);
    if (g.is_array(key)) {
        const auto all = g.integers(key);
        if (all.empty() ||
            std::any_of(all.begin(), all.end(), [&](int64_t n) { return n != all.front(); }))
            throw Error(Errc::unsupported, {g.path(), {}, {}},
                        fmt::format("key '{}': differs from layer to layer", key));
        v = static_cast<int>(std::clamp<int64_t>(all.front(), 0, 1 << 30));
    } else if (g.has(key) || !otherwise) {
        v = g.get<int>(key);
    }
    if (v <= 0) g.fail(key, fmt::format("found {}, needed a positive number", v));
    return v;
}

void add_special_tokens(const GgufModel& g, Json& c) {
    const auto id = [&](const char* key) -> std::optional<int64_t> {
        if (!g.has(key)) return std::nullopt;
        const auto v = g.get<int64_t>(key);
        return v >= 0 && v < (int64_t{1} << 30) ? std::optional(v) : std::nullopt;
    };
    if (const auto v = id("tokenizer.ggml.bos_token_id")) c["bos_token_id"] = *v;
    Json ends = Json::array();
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                            "tokenizer.ggml.eom_token_id"})
        if (const auto v = id(key); v && std::find(ends.begin(), ends.end(), *v) == ends.end())
            ends.push_back(*v);
    if (ends.size() == 1) c["eos_token_id"] = ends[0];
    if (ends.size() > 1) c["eos_token_id"] = ends;
    if (const auto v = id("tokenizer.ggml.padding_token_id")) c["pad_token_id"] = *v;
}

bool has_bias(const GgufModel& g, std::string_view part) {
    return g.find(fmt::format("blk.0.{}.bias", part)) != nullptr;
}

}  // namespace

std::string arch_key(const GgufModel& gguf, std::string_view key) {
    return fmt::format("{}.{}", gguf.get<std::string>("general.architecture"), key);
}

const GgufFamily& family_of(const GgufModel& gguf) {
    const auto name = gguf.get<std::string>("general.architecture");
    const std::string count = arch_key(gguf, "expert_count");
    const bool experts = gguf.get<int>(count, 0) > 0;
    bool other = false;
    for (const GgufFamily& f : kFamilies) {
        if (f.name == name && f.experts == experts) return f;
        other = other || f.name == name;
    }
    if (other)
        throw Error(Errc::unsupported, {gguf.path(), {}, {}},
                    fmt::format("key '{}': a '{}' {} experts cannot be imported", count, name,
                                experts ? "with" : "without"));
    std::string known;
    for (const GgufFamily& f : kFamilies)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", f.name);
    throw Error(
        Errc::unsupported, {gguf.path(), {}, {}},
        fmt::format("key 'general.architecture': found '{}', needed one of {}", name, known));
}

Json rebuild_config(const GgufModel& g, const GgufFamily& family) {
    const auto key = [&](std::string_view name) { return arch_key(g, name); };
    const GgufTensor* embedding = g.find("token_embd.weight");
    if (!embedding || embedding->dims.size() != 2)
        throw Error(Errc::invalid_file, {g.path(), "token_embd.weight", {}},
                    "needed a matrix of this name");
    const int hidden = one_size(g, key("embedding_length"));
    const int heads = one_size(g, key("attention.head_count"));
    const int head_dim = one_size(g, key("attention.key_length"), hidden / heads);
    if (one_size(g, key("attention.value_length"), head_dim) != head_dim)
        throw Error(Errc::unsupported, {g.path(), {}, {}},
                    fmt::format("key '{}': differs from the key length {}",
                                key("attention.value_length"), head_dim));
    Json c = {{"architectures", {std::string(family.class_name)}},
              {"model_type", std::string(family.model_type)},
              {"vocab_size", embedding->dims[0]},
              {"hidden_size", hidden},
              {"intermediate_size", one_size(g, key("feed_forward_length"))},
              {"num_hidden_layers", one_size(g, key("block_count"))},
              {"num_attention_heads", heads},
              {"num_key_value_heads", one_size(g, key("attention.head_count_kv"), heads)},
              {"head_dim", head_dim},
              {"hidden_act", "silu"},
              {"max_position_embeddings", one_size(g, key("context_length"))},
              {"tie_word_embeddings", g.find("output.weight") == nullptr},
              {"attention_bias", has_bias(g, "attn_q")},
              {"mlp_bias", has_bias(g, "ffn_down")}};
    if (g.has(key("attention.layer_norm_rms_epsilon")))
        c["rms_norm_eps"] = g.get<double>(key("attention.layer_norm_rms_epsilon"));
    else if (!g.has(key("attention.layer_norm_epsilon")))
        g.fail(key("attention.layer_norm_rms_epsilon"), "missing");
    add_rope(g, c);
    add_special_tokens(g, c);
    if (family.extra) family.extra(g, c);
    return c;
}

Json rebuild_generation_config(const GgufModel& g) {
    Json c = Json::object();
    add_special_tokens(g, c);
    const auto take = [&](const char* key, const char* name, auto zero) {
        if (g.has(key)) c[name] = g.get<decltype(zero)>(key);
    };
    take("general.sampling.temp", "temperature", 0.0);
    take("general.sampling.top_p", "top_p", 0.0);
    take("general.sampling.min_p", "min_p", 0.0);
    take("general.sampling.top_k", "top_k", 0);
    take("general.sampling.penalty_repeat", "repetition_penalty", 0.0);
    if (c.contains("temperature")) c["do_sample"] = c["temperature"].get<double>() > 0;
    return c;
}

std::string checkpoint_name(const GgufModel& gguf, const GgufFamily& family,
                            const GgufTensor& tensor) {
    const std::string_view name = tensor.name;
    if (name == "token_embd.weight") return "model.embed_tokens.weight";
    if (name == "output_norm.weight") return "model.norm.weight";
    if (name == "output.weight") return "lm_head.weight";
    if (std::find(std::begin(kConfigTensors), std::end(kConfigTensors), name) !=
        std::end(kConfigTensors))
        return {};
    // blk.LAYER.PART.weight or .bias
    const size_t layer = name.find('.', 4), end = name.rfind('.');
    if (name.starts_with("blk.") && layer != std::string_view::npos && end > layer) {
        const std::string_view number = name.substr(4, layer - 4), leaf = name.substr(end + 1);
        const std::string_view part = name.substr(layer + 1, end - layer - 1);
        std::string_view hf = part_in(family.parts, part);
        if (hf.empty()) hf = part_in(kLlamaParts, part);
        const bool digits =
            !number.empty() &&
            std::all_of(number.begin(), number.end(), [](char d) { return d >= '0' && d <= '9'; });
        if (!hf.empty() && digits && (leaf == "weight" || leaf == "bias"))
            return fmt::format("model.layers.{}.{}.{}", number, hf, leaf);
    }
    throw Error(Errc::unsupported, gguf.where(tensor),
                fmt::format("is no part of a '{}' model that can be imported", family.name));
}

}  // namespace exl3
