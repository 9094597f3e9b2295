#include <algorithm>
#include <cmath>
#include <vector>

#include "base/half.h"
#include "core/device.h"
#include "ops/sequences.h"

namespace exl3::ref {

void attention(Stream&, const AttentionArgs& a) {
    const SequencesOnHost seq{a.seq};
    const int64_t heads = a.q.shape[1], dim = a.q.shape[2], kv_heads = a.cache.k.shape[2];
    std::vector<double> score, sum(static_cast<size_t>(dim));
    for (int s = 0; s < seq.count(); ++s)
        for (int r = seq.begin(s); r < seq.end(s); ++r)
            for (int64_t h = 0; h < heads; ++h) {
                const float* q = a.q.row<float>(r * heads + h);
                const int last = seq.position(s, r);
                const int first = a.window > 0 ? std::max(0, last - a.window + 1) : 0;
                const auto at = [&](const View& cache, int t) {
                    return cache.as<f16>() +
                           (seq.slot(s, t) * kv_heads + h / (heads / kv_heads)) * dim;
                };
                score.clear();
                double top = a.sinks ? a.sinks.as<float>()[h] : -INFINITY;
                for (int t = first; t <= last; ++t) {
                    double dot = 0;
                    for (int64_t i = 0; i < dim; ++i) dot += q[i] * to_float(at(a.cache.k, t)[i]);
                    dot *= a.scale;
                    if (a.softcap > 0) dot = a.softcap * std::tanh(dot / a.softcap);
                    score.push_back(dot);
                    top = std::max(top, dot);
                }
                double total = a.sinks ? std::exp(a.sinks.as<float>()[h] - top) : 0;
                std::fill(sum.begin(), sum.end(), 0);
                for (int t = first; t <= last; ++t) {
                    const double p = std::exp(score[static_cast<size_t>(t - first)] - top);
                    total += p;
                    for (int64_t i = 0; i < dim; ++i)
                        sum[static_cast<size_t>(i)] += p * to_float(at(a.cache.v, t)[i]);
                }
                for (int64_t i = 0; i < dim; ++i)
                    a.y.row<float>(r * heads + h)[i] =
                        static_cast<float>(sum[static_cast<size_t>(i)] / total);
            }
}

}  // namespace exl3::ref
