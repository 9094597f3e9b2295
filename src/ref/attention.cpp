#include <algorithm>
#include <cmath>
#include <vector>

#include "core/device.h"
#include "ops/sequences.h"
#include "ref/kv_rows.h"

namespace exl3::ref {

void attention(Stream&, const AttentionArgs& a) {
    const SequencesOnHost seq{a.seq};
    const int64_t heads = a.q.shape[1], dim = a.q.shape[2], group = heads / a.cache.kv_heads();
    std::vector<double> score, sum(static_cast<size_t>(dim));
    std::vector<float> row(static_cast<size_t>(dim));
    for (int s = 0; s < seq.count(); ++s)
        for (int r = seq.begin(s); r < seq.end(s); ++r)
            for (int64_t h = 0; h < heads; ++h) {
                const float* q = a.q.row<float>(r * heads + h);
                const int last = seq.position(s, r);
                const int first = a.window > 0 ? std::max(0, last - a.window + 1) : 0;
                score.clear();
                double top = a.sinks ? a.sinks.as<float>()[h] : -INFINITY;
                for (int t = first; t <= last; ++t) {
                    double dot = 0;
                    read_kv(a.cache.k, a.cache.k_scale, seq.slot(s, t), h / group, row);
                    for (int64_t i = 0; i < dim; ++i) dot += q[i] * row[static_cast<size_t>(i)];
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
                    read_kv(a.cache.v, a.cache.v_scale, seq.slot(s, t), h / group, row);
                    for (int64_t i = 0; i < dim; ++i)
                        sum[static_cast<size_t>(i)] += p * row[static_cast<size_t>(i)];
                }
                for (int64_t i = 0; i < dim; ++i)
                    a.y.row<float>(r * heads + h)[i] =
                        static_cast<float>(sum[static_cast<size_t>(i)] / total);
            }
}

}  // namespace exl3::ref
