#pragma once
#include "arch/arch.h"

namespace exl3 {

/// The fields nearly every decoder shares, read once. See docs/design/arch.md.
struct Common {
    int hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, layers = 0;
    int inner = 0;  ///< 0: the config has none, as where every layer has experts
    float eps = 1e-6f;
};
Common common(const ArchInput& in);

/// Embedding, final norm, head and tying as most models have them; blocks are left to the caller.
/// @param tied_default  of the class, where config.json does not say
ModelSpec decoder(const ArchInput& in, bool tied_default = false);

/// The Llama layout: pre-norm attention and gated MLP under the usual names.
BlockSpec llama_block(const ArchInput& in, const Common& c, int layer);
/// decoder() with llama_block() for every layer; architectures then change what differs.
ModelSpec llama_like(const ArchInput& in, bool tied_default = false);
/// Norms over each head of q and k under their usual names.
void add_head_norms(ModelSpec& spec, HeadNormSpan span = HeadNormSpan::head);
/// Sublayers that read the raw residual and are normed after (post_attention_layernorm and
/// post_feedforward_layernorm): OLMo 3, EXAONE 4.
void norm_after_only(ModelSpec& spec);
/// A mixture of experts under the usual names below `at`: router `gate`, experts / e /
/// {gate,up,down}_proj, or stacked as experts.gate_up_proj and experts.down_proj. Counts are read
/// in either spelling (num_experts, num_local_experts, ...); softmax, renormalised as
/// norm_topk_prob says. Stacked tensors are found in the file, with their orientation.
/// @param inner  width of an expert
/// @param normalise_default  where norm_topk_prob is not given
MoeSpec experts(const ArchInput& in, const Key& at, int inner, bool normalise_default = true);
/// Makes the router score by sigmoid with a correction bias: the factor and groups of the config.
/// @param bias  names the bias may have
void sigmoid_router(const ArchInput& in, MoeSpec& moe, std::vector<std::string> bias,
                    double scale_default = 1);
/// A shared expert under `key`, none where width is 0.
void add_shared_expert(MoeSpec& moe, const Key& key, int width);

/// A size of a model: from 1 to 16 million. Throws naming the key.
int size(const HfConfig& c, std::string_view key, std::optional<int> otherwise = {});

/// The taps of a short convolution: 2 to 64. Throws naming the key.
int conv_kernel(const HfConfig& c, std::string_view key, int otherwise);
/// The first of at / names that has a weight in the file, else the first: writers differ in names.
Key first_standing(const ArchInput& in, const Key& at,
                   std::initializer_list<std::string_view> names);

AttentionSpec& attention_of(BlockSpec& block);
GatedMlpSpec& mlp_of(BlockSpec& block);

/// RoPE from either generation of keys (rope_theta + rope_scaling, or rope_parameters).
/// @param layer_type  picks the entry of a rope_parameters that is keyed by layer type; "": none is
RopeSpec rope(const ArchInput& in, RopeStyle style, int head_dim, std::string_view layer_type = "",
              double partial_default = 1.0);

/// hidden_act or hidden_activation; throws for one that this build does not know.
Act activation(const ArchInput& in, std::string_view key);

/// The window of each layer (0 = all of the past): layer_types where given, else `pattern(i)`.
std::vector<int> windows(const ArchInput& in, int layers, int window,
                         const std::function<bool(int)>& pattern);

/// Refuses sizes that no model has (zero, negative, odd rotary width, heads not a multiple of
/// kv_heads) before they size anything, and keys that change the maths and were not read.
void check_spec(const ModelSpec& spec, const ArchInput& in);

}  // namespace exl3
