#pragma once
#include <array>

#include "core/tensor.h"

namespace exl3 {

/// What one recurrent layer remembers of each sequence, by slot.
struct StateView {
    View window;  ///< (slots, window, channels) f32: the last inputs of a convolution, oldest first
    View memory;  ///< (slots, heads, key_dim, value_dim) f32: the matrices of a linear recurrence
};

/// Which rows of a batch belong to which sequence, and the slot that holds what came before. Rows
/// [q_start[s], q_start[s + 1]) continue the state in slots[s] and leave theirs there. A sequence
/// whose first row is its first token (kv_len[s] equals its rows) starts from zeros, whatever the
/// slot held. The slots of one batch differ.
struct SlotsView {
    ConstView q_start;  ///< (sequences + 1) i32, ascending, first 0, last = tokens in the batch
    ConstView kv_len;   ///< (sequences) i32: tokens of the sequence, those of this batch included
    ConstView slots;    ///< (sequences) i32, each in [0, slots of the state)
};

/// Taps of a causal_conv at most.
inline constexpr int kMaxConvKernel = 64;

/// A causal convolution of each channel by itself, along the tokens of a sequence:
///   u = gate_in * x;  y[t, c] = gate_out[t, c] * act(bias[c] + sum over j < kernel of
///   weight[j, c] * u[t - kernel + 1 + j, c])
/// What u was before the batch stands in the window.
struct CausalConvArgs {
    ConstView x;         ///< (tokens, channels) f32
    ConstView gate_in;   ///< optional (tokens, channels) f32
    ConstView gate_out;  ///< optional (tokens, channels) f32
    ConstView weight;    ///< (kernel, channels) f32; the last row meets the newest input
    ConstView bias;      ///< optional (channels) f32
    View y;              ///< (tokens, channels) f32; aliases nothing
    View window;         ///< (slots, kernel - 1, channels) f32, updated
    SlotsView seq;
    bool silu = false;  ///< act is silu; else nothing
};
void check(const CausalConvArgs& a);

/// The gates of a linear recurrence, from projections of the token. With
/// step = clamp(softplus(a + step_bias), step_min, step_max): log_decay = -exp(a_log) * step, and
/// write = write_scale * sigmoid(b), or step itself where there is no b (Mamba2).
struct RecurrenceGatesArgs {
    ConstView a;          ///< (tokens, heads) f32
    ConstView b;          ///< optional (tokens, heads) f32
    ConstView a_log;      ///< (heads) f32
    ConstView step_bias;  ///< (heads) f32
    View log_decay;       ///< (tokens, heads) f32, at most 0
    View write;           ///< (tokens, heads) f32
    float write_scale = 1;
    float step_min = 0, step_max = 0;  ///< step_max may be infinite
};
void check(const RecurrenceGatesArgs& a);

/// A linear recurrence with a matrix S (key_dim, value_dim) per head, token after token:
///   S <- exp(log_decay) S;  u = write * (v - delta * S^T k);  S <- S + k u^T
///   y = scale * S^T q + skip * v
/// with delta = 1: gated delta rule (arXiv 2412.06464); delta = 0: Mamba2 (arXiv 2405.21060), where
/// k is B, q is C and write is the step. Head h uses head h / (heads / key_heads) of q and k.
struct RecurrenceArgs {
    ConstView q;          ///< (tokens, key_heads * key_dim) f32
    ConstView k;          ///< the same
    ConstView v;          ///< (tokens, heads * value_dim) f32
    ConstView log_decay;  ///< (tokens, heads) f32, at most 0
    ConstView write;      ///< (tokens, heads) f32
    ConstView skip;       ///< optional (heads) f32
    View y;               ///< (tokens, heads * value_dim) f32; aliases nothing
    View memory;          ///< (slots, heads, key_dim, value_dim) f32, updated
    SlotsView seq;
    int key_heads = 0;  ///< a divisor of the heads
    bool delta = false;
    /// Positive: q and k are divided by sqrt(sum of squares + this), head by head.
    float normalize_eps = 0;
    float scale = 1;
};
void check(const RecurrenceArgs& a);

/// Rows made of `groups` groups, each holding its share of every part in turn, taken apart: columns
/// [g * n, (g + 1) * n) of a part are what group g holds of it, n = its columns / groups.
struct SplitGroupsArgs {
    ConstView x;                ///< (rows, sum of the parts' columns) f32
    std::array<View, 4> parts;  ///< (rows, columns) f32, columns a multiple of groups; aliasing
                                ///< nothing; unused ones empty, at the end
    int groups = 0;
};
void check(const SplitGroupsArgs& a);

}  // namespace exl3
