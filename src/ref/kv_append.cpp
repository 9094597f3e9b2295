#include <algorithm>

#include "base/half.h"
#include "core/device.h"
#include "ops/sequences.h"

namespace exl3::ref {
namespace {

void append(const ConstView& from, const View& cache, const SequencesOnHost& seq) {
    const int64_t row = from.shape[1] * from.shape[2];
    for (int s = 0; s < seq.count(); ++s)
        for (int r = seq.begin(s); r < seq.end(s); ++r) {
            f16* out = cache.as<f16>() + seq.slot(s, seq.position(s, r)) * row;
            const float* x = from.row<float>(r * from.shape[1]);
            for (int64_t i = 0; i < row; ++i) out[i] = to_f16(std::clamp(x[i], -65504.f, 65504.f));
        }
}

}  // namespace

void kv_append(Stream&, const KvAppendArgs& a) {
    append(a.k, a.cache.k, {a.seq});
    append(a.v, a.cache.v, {a.seq});
}

}  // namespace exl3::ref
