#pragma once
#include "ops/attention.h"
#include "ops/rope.h"

namespace exl3 {

/// An RMS norm over each head, with one weight for all heads; absent where eps is 0.
struct HeadNorm {
    ConstView weight;  ///< (head_dim) f32, f16 or bf16, or empty
    float eps = 0;
    float weight_bias = 0;  ///< 1 where the checkpoint stores weight - 1
};

/// What stands between the projections and attention: norms over the heads of queries and keys,
/// their rotation, and keys and values put into the cache. Equal to rms_norm, rope and kv_append
/// one after the other, which is what a device without a kernel for it does.
struct RopeAppendArgs {
    View q;       ///< (tokens, heads, head_dim) f32, in place
    View k;       ///< (tokens, kv_heads, head_dim) f32, in place
    ConstView v;  ///< (tokens, kv_heads, head_dim) f32
    HeadNorm q_norm, k_norm;
    ConstView positions;  ///< (tokens) i32
    ConstView inv_freq;   ///< as in RopeArgs; empty: nothing rotates
    RopeStyle style = RopeStyle::neox;
    float attention_factor = 1;
    float query_scale_beta = 0;  ///< of queries alone
    float query_scale_length = 1;
    SequencesView seq;
    KvView cache;
};
void check(const RopeAppendArgs& a);
class Stream;
namespace ops {
/// rope_append by its parts, on the stream's device.
void rope_append_in_parts(Stream& s, const RopeAppendArgs& a);
}  // namespace ops

}  // namespace exl3
