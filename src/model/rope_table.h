#pragma once
#include <cstdint>
#include <vector>

#include "model/spec.h"

namespace exl3 {

/// The numbers behind a RopeSpec.
struct RopeTable {
    std::vector<float> inv_freq;  ///< (dims / 2) radians per token
    float attention_factor = 1;   ///< multiplies cos and sin
};

/// @param length  tokens of the whole request (prompt and new tokens); longrope and dynamic scaling
///                choose their table by it, the others do not look at it
RopeTable rope_table(const RopeSpec& spec, int64_t length);

/// True where the table depends on the length of the request.
bool depends_on_length(const RopeSpec& spec);

}  // namespace exl3
