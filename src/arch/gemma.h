#pragma once
#include "arch/skeleton.h"

namespace exl3::arch {

/// What Gemma 2 and 3 share: sandwich norms that store weight - 1, scaled embedding, tied head,
/// query_pre_attn_scalar, gelu_tanh.
ModelSpec gemma(const ArchInput& in);

}  // namespace exl3::arch
