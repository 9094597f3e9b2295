#pragma once
#include "arch/skeleton.h"

namespace exl3 {

/// True for the layers with full attention: layer_types ("full_attention", else linear), or every
/// full_attention_interval-th (4) where the config has no such list.
std::vector<bool> full_attention_layers(const ArchInput& in, int layers);

/// Sizes of a gated delta net from the linear_* keys, which Qwen3-Next, Qwen 3.5 and OLMo Hybrid
/// share. Names are left as they are.
/// @param otherwise  sizes of the class where the config does not say
DeltaNetSpec delta_net(const ArchInput& in, const Key& key, const DeltaNetSpec& otherwise);

/// Qwen3-Next and Qwen 3.5 without their MLPs: zero-centred norms, gated delta nets, and softmax
/// attention with head norms, a gate on its output and partial rotation.
ModelSpec qwen_hybrid(const ArchInput& in, double theta_default);

/// Their mixture of experts: softmax router, shared expert behind a sigmoid gate.
MoeSpec qwen_experts(const ArchInput& in, const Key& at);

}  // namespace exl3
