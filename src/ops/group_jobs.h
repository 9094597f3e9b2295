#pragma once
#include "ops/exl3.h"
#include "ops/linear.h"
#include "ops/moe.h"
#include "trellis/tile.h"

namespace exl3 {

/// Host-side reading of RowGroups, for the backends whose memory is the host's.
struct RowGroupsOnHost {
    const RowGroups& g;
    int count() const { return static_cast<int>(g.start.shape[0]) - 1; }
    int begin(int group) const { return g.start.as<int32_t>()[group]; }
    int end(int group) const { return g.start.as<int32_t>()[group + 1]; }
    /// Row of x that an entry reads.
    int source(int entry) const { return g.source ? g.source.as<int32_t>()[entry] : entry; }
};

/// One group of a grouped product as a product of its own. x is left whole: row r of y reads row
/// source(begin + r) of it. The weight has no data where the group is to be skipped.
inline LinearArgs group_job(const GroupedLinearArgs& a, int group) {
    const RowGroupsOnHost g{a.groups};
    const auto* at = a.matrices.row<uint64_t>(group);
    const int64_t out = a.y.shape[1];
    LinearArgs job{
        .x = a.x,
        .weight = dense(reinterpret_cast<const void*>(at[0]), a.dtype, {out, a.x.shape[1]}),
        .y = slice_rows(a.y, g.begin(group), g.end(group) - g.begin(group))};
    if (at[1]) job.bias = dense(reinterpret_cast<const void*>(at[1]), DType::f32, {out});
    return job;
}

/// One head of a head_linear as a product of its own: rows are a stride of all heads apart.
inline LinearArgs head_job(const HeadLinearArgs& a, int64_t head) {
    const int64_t heads = a.x.shape[1], in = a.x.shape[2], out = a.y.shape[2];
    const auto* weight = static_cast<const std::byte*>(a.weight.data) +
                         head * out * in * static_cast<int64_t>(size_of(a.weight.dtype));
    return {.x = {a.x.row<float>(head), DType::f32, {a.x.shape[0], in}, heads * a.x.row_stride},
            .weight = dense(weight, a.weight.dtype, {out, in}),
            .y = {a.y.row<float>(head), DType::f32, {a.y.shape[0], out}, heads * a.y.row_stride}};
}

/// The same; packed has no data where the group is to be skipped.
inline Exl3LinearArgs group_job(const GroupedExl3LinearArgs& a, int group) {
    const RowGroupsOnHost g{a.groups};
    const auto* at = a.matrices.row<uint64_t>(group);
    const auto part = [&](int i, DType dtype, Shape shape) {
        return dense(reinterpret_cast<const void*>(at[i]), dtype, shape);
    };
    Exl3LinearArgs job{
        .x = a.x,
        .packed = part(0, DType::i16, {a.k / kTile, a.n / kTile, tile_words(a.bits)}),
        .suh = part(1, DType::f16, {a.k}),
        .svh = part(2, DType::f16, {a.n}),
        .y = slice_rows(a.y, g.begin(group), g.end(group) - g.begin(group)),
        .codebook = a.codebook,
        .bits = a.bits};
    if (at[3]) job.bias = part(3, DType::f32, {a.n});
    return job;
}

}  // namespace exl3
