#pragma once
#include "core/tensor.h"

namespace exl3 {

/// y[t, :] = table[tokens[t], :] * scale.
struct EmbedArgs {
    ConstView tokens;  ///< (tokens) i32, each in [0, vocab)
    ConstView table;   ///< (vocab, hidden) f32, f16 or bf16
    View y;            ///< (tokens, hidden) f32
    float scale = 1;
};
void check(const EmbedArgs& a);

}  // namespace exl3
