#pragma once
#include "core/tensor.h"

namespace exl3 {

/// The end of a decoding step with one row per sequence: picks each next token and moves the state
/// that the next step reads, so that steps can follow each other without the host.
struct NextTokenArgs {
    ConstView logits;  ///< (sequences, vocab) f32
    View tokens;       ///< (sequences) i32, overwritten: the first of the largest logits, NaN never
    View positions;    ///< (sequences) i32, each + 1
    View kv_len;       ///< (sequences) i32, each + 1
    View log;          ///< (steps, sequences) i32: row (old position % steps) receives the tokens
};
void check(const NextTokenArgs& a);

}  // namespace exl3
