#include "ops/rope_append.h"

#include "ops/ops.h"

namespace exl3 {
namespace {

void normalise(Stream& s, View heads, const HeadNorm& norm) {
    if (norm.eps == 0) return;
    const View rows = reshape(heads, {heads.shape[0] * heads.shape[1], heads.shape[2]});
    ops::rms_norm(s, {.x = rows,
                      .weight = norm.weight,
                      .y = rows,
                      .eps = norm.eps,
                      .weight_bias = norm.weight_bias});
}

}  // namespace

void check(const RopeAppendArgs& a) {
    EXL3_CHECK(a.q.shape.rank == 3 && a.k.shape == a.v.shape && a.q.shape[2] == a.k.shape[2] &&
               a.q.shape[0] == a.k.shape[0]);
    EXL3_CHECK(a.q_norm.eps >= 0 && a.k_norm.eps >= 0);
    EXL3_CHECK(a.query_scale_beta == 0 || a.inv_freq);
    check(KvAppendArgs{a.k, a.v, a.seq, a.cache});
    if (a.inv_freq)
        for (const View& heads : {a.q, a.k})
            check(RopeArgs{.x = heads, .positions = a.positions, .inv_freq = a.inv_freq});
}

void ops::rope_append_in_parts(Stream& s, const RopeAppendArgs& a) {
    normalise(s, a.q, a.q_norm);
    normalise(s, a.k, a.k_norm);
    if (a.inv_freq)
        for (const bool query : {true, false})
            rope(s, {.x = query ? a.q : a.k,
                     .positions = a.positions,
                     .inv_freq = a.inv_freq,
                     .style = a.style,
                     .attention_factor = a.attention_factor,
                     .query_scale_beta = query ? a.query_scale_beta : 0,
                     .query_scale_length = a.query_scale_length});
    kv_append(s, {.k = a.k, .v = a.v, .seq = a.seq, .cache = a.cache});
}

}  // namespace exl3
