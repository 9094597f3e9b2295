#include <algorithm>
#include <cmath>

#include "sample/exp.h"
#include "sample/steps.h"

namespace exl3 {
namespace {

// Moves the largest logit to 0 and remembers by how much.
void shift_to_zero(Candidates& c) {
    const float most = max_logit(c.logit);
    for (float& l : c.logit) l -= most;
    c.offset += most;
}

// Logits relative to the largest become s * (j d^3 - k d^2), d <= 0.
void smooth(Candidates& c, double s, double curve) {
    const double k = (3 - curve) / 2, j = (curve - 1) / 2;
    for (float& l : c.logit) {
        if (l == kNever) continue;
        const double d = l;
        l = static_cast<float>(std::clamp(s * d * d * (j * d - k), -kLogitLimit, kLogitLimit));
    }
}

// H / ln N of the tokens left; 0 if there is only one.
double normalised_entropy(Candidates& c) {
    compact(c);
    if (c.size() < 2) return 0;
    const double total = weigh(c);
    const float most = max_logit(c.logit);
    double mean = 0;  // of logit - max
    for (size_t i = 0; i < c.size(); ++i)
        mean += c.weight[i] * static_cast<double>(c.logit[i] - most);
    const double entropy = std::log(total) - mean / total;
    return std::clamp(entropy / std::log(static_cast<double>(c.size())), 0.0, 1.0);
}

}  // namespace

void apply_temperature(Candidates& c, const SamplerParams& p) {
    shift_to_zero(c);
    if (p.smoothing_factor > 0) {
        smooth(c, p.smoothing_factor, p.smoothing_curve);
        shift_to_zero(c);  // a strongly cubic curve can lift a token above the best
    }
    double t = p.temperature;
    if (p.max_temp > p.min_temp) {
        const double share = std::pow(normalised_entropy(c), p.temp_exponent);
        t = p.min_temp + (p.max_temp - p.min_temp) * share;
    }
    if (t == 1) return;
    // A temperature of 0 can come from min_temp; this one already leaves only the best tokens.
    const double scale = 1 / std::max(t, 1e-6);
    const F32x4 scales = splat4(static_cast<float>(scale));
    size_t i = 0;
    for (; i + 4 <= c.size(); i += 4) store4(&c.logit[i], load4(&c.logit[i]) * scales);
    for (; i < c.size(); ++i) c.logit[i] *= static_cast<float>(scale);
    c.offset *= scale;
}

}  // namespace exl3
