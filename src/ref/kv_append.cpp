#include "core/device.h"
#include "ops/sequences.h"
#include "ref/kv_rows.h"

namespace exl3::ref {
namespace {

void append(const ConstView& from, const View& data, const View& scale,
            const SequencesOnHost& seq) {
    const int64_t heads = from.shape[1], dim = from.shape[2];
    for (int s = 0; s < seq.count(); ++s)
        for (int r = seq.begin(s); r < seq.end(s); ++r)
            for (int64_t h = 0; h < heads; ++h)
                write_kv(from.row<float>(r * heads + h), dim, data, scale,
                         seq.slot(s, seq.position(s, r)), h);
}

}  // namespace

void kv_append(Stream&, const KvAppendArgs& a) {
    append(a.k, a.cache.k, a.cache.k_scale, {a.seq});
    append(a.v, a.cache.v, a.cache.v_scale, {a.seq});
}

}  // namespace exl3::ref
