#pragma once
#include "core/tensor.h"
#include "trellis/codebook.h"

namespace exl3 {

/// How a router makes scores of its logits: over all experts, or each by itself.
enum class RouterScore : uint8_t { softmax, sigmoid };

/// Chooses experts for every row. The choice goes by score + bias, the weights by the score alone.
struct RouteArgs {
    ConstView logits;        ///< (rows, experts) f32
    ConstView bias;          ///< optional (experts) f32: correction bias
    ConstView expert_scale;  ///< optional (experts) f32: multiplies the weight of each expert
    View chosen;             ///< (rows, top_k) i32, best first; of equals the lower index
    View weight;             ///< (rows, top_k) f32
    RouterScore score = RouterScore::softmax;
    bool normalise = true;  ///< weights of a row are divided by their sum
    float scale = 1;        ///< multiplies the weights afterwards
    /// Experts stand in `groups` runs of equal size; only the groups_kept runs with the largest sum
    /// of their two best keys are chosen from, the keys of the others count as 0.
    int groups = 1, groups_kept = 1;
};
void check(const RouteArgs& a);

/// Rows of a batch, sorted by the matrix they go through: the entries [start[g], start[g + 1]) of
/// the list go through matrix g.
struct RowGroups {
    ConstView start;   ///< (groups + 1) i32, ascending from 0 to the length of the list
    ConstView source;  ///< (entries) i32: row of x that an entry reads; empty: entry i reads row i
};

/// Sorts the (row, choice) pairs of a routing by expert, within an expert by row.
struct GroupRowsArgs {
    ConstView chosen;  ///< (rows, top_k) i32, each below the number of groups
    View start;        ///< (groups + 1) i32
    View source;       ///< (rows * top_k) i32: the row of each entry
    View slot;         ///< (rows, top_k) i32: the entry of each pair
};
void check(const GroupRowsArgs& a);

/// y[i, :] = x[source[i], :] W_gᵀ + b_g for the entries i of every group g, plain weights.
struct GroupedLinearArgs {
    ConstView x;  ///< (rows, in) f32
    RowGroups groups;
    ConstView matrices;  ///< (groups, 2) u64 addresses in device memory: the weight, dense (out,
                         ///< in), and the bias, (out) f32 or 0. Weight 0: the group's rows of y
                         ///< stay as they are
    DType dtype = DType::f32;  ///< of all weights: f32, f16 or bf16
    View y;                    ///< (entries, out) f32; must not alias x
};
void check(const GroupedLinearArgs& a);

/// The same for EXL3 matrices of one size, number of bits and codebook (ops/exl3.h).
struct GroupedExl3LinearArgs {
    ConstView x;  ///< (rows, in) f32, in <= k
    RowGroups groups;
    ConstView matrices;  ///< (groups, 4) u64 addresses in device memory: packed, suh, svh, and the
                         ///< bias, (n) f32 or 0. Packed 0: the group's rows of y stay as they are
    View y;              ///< (entries, out) f32, out <= n; must not alias x
    int64_t k = 0, n = 0;  ///< stored sizes, multiples of 128
    Codebook codebook{};
    int bits = 0;  ///< 1 to 8
};
void check(const GroupedExl3LinearArgs& a);

/// y[r, :] = sum over j of weight[r, j] * x[slot[r, j], :], in the order of j.
struct CombineRowsArgs {
    ConstView x;       ///< (entries, dim) f32
    ConstView slot;    ///< (rows, top_k) i32
    ConstView weight;  ///< (rows, top_k) f32
    View y;            ///< (rows, dim) f32, overwritten; must not alias x
};
void check(const CombineRowsArgs& a);

}  // namespace exl3
