#include "gen/log_softmax.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace exl3 {

void LogSoftmax::set(std::span<const float> logits) {
    EXL3_CHECK(!logits.empty());
    logits_ = logits;
    best_ = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    finite_ = std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); });
    if (!finite_) return;
    const double top = logits[static_cast<size_t>(best_)];
    double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
    log_sum_ = top + std::log(sum);
}

double kl_divergence(const LogSoftmax& p, const LogSoftmax& q) {
    EXL3_CHECK(p.finite() && q.finite() && p.logits().size() == q.logits().size());
    double sum = 0;
    const auto n = static_cast<int32_t>(p.logits().size());
    for (int32_t i = 0; i < n; ++i) {
        const double log_p = p.log_p(i);
        sum += std::exp(log_p) * (log_p - q.log_p(i));
    }
    // Rounding may leave a distribution's distance to itself a hair below zero.
    return std::max(sum, 0.0);
}

}  // namespace exl3
