#pragma once
#include "io/gguf.h"
#include "io/json.h"

namespace exl3 {

/// Adds rope_theta, partial_rotary_factor and rope_scaling to a config that has head_dim and
/// max_position_embeddings. Llama 3's scaling is not in the metadata: it is found from the factors
/// in rope_freqs.weight, and an Error says so where no known setting gives those.
void add_rope(const GgufModel& gguf, Json& config);

/// Phi's two lists of factors, if the file has them.
void add_longrope(const GgufModel& gguf, Json& config);

}  // namespace exl3
