#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/moe.h"

namespace exl3 {

/// Scratch of route_row, kept between rows.
struct RouteScratch {
    std::vector<double> score, key;
    std::vector<char> taken;
};

namespace route {

inline void scores(const RouteArgs& a, const float* logit, std::vector<double>& score) {
    const auto experts = static_cast<size_t>(a.logits.shape[1]);
    score.resize(experts);
    if (a.score == RouterScore::sigmoid) {
        for (size_t e = 0; e < experts; ++e)
            score[e] = 1 / (1 + std::exp(-static_cast<double>(logit[e])));
        return;
    }
    const double top = *std::max_element(logit, logit + experts);
    double sum = 0;
    for (size_t e = 0; e < experts; ++e) sum += score[e] = std::exp(logit[e] - top);
    for (double& s : score) s /= sum;
}

/// The best entry of key[begin, end) that is not taken, which it then is. Finds one even among NaN.
inline size_t take_best(const std::vector<double>& key, std::vector<char>& taken, size_t begin,
                        size_t end) {
    size_t best = end;
    for (size_t e = begin; e < end; ++e)
        if (!taken[e] && (best == end || key[e] > key[best])) best = e;
    taken[best] = 1;
    return best;
}

/// Sets the keys of all but the best groups to 0.
inline void keep_groups(const RouteArgs& a, RouteScratch& w) {
    const size_t experts = w.key.size(), groups = static_cast<size_t>(a.groups),
                 size = experts / groups;
    std::vector<double> best(groups);
    std::fill(w.taken.begin(), w.taken.end(), 0);
    for (size_t g = 0; g < groups; ++g)
        for (size_t n = 0; n < std::min<size_t>(2, size); ++n)
            best[g] += w.key[take_best(w.key, w.taken, g * size, (g + 1) * size)];
    std::vector<char> kept(groups);
    for (int n = 0; n < a.groups_kept; ++n) take_best(best, kept, 0, groups);
    for (size_t e = 0; e < experts; ++e)
        if (!kept[e / size]) w.key[e] = 0;
}

}  // namespace route

/// Routes one row, for the backends whose memory is the host's. In f64, so that experts with nearly
/// equal keys are told apart alike everywhere.
inline void route_row(const RouteArgs& a, int64_t row, RouteScratch& w) {
    route::scores(a, a.logits.row<float>(row), w.score);
    const size_t experts = w.score.size();
    w.key = w.score;
    w.taken.resize(experts);
    if (a.bias)
        for (size_t e = 0; e < experts; ++e) w.key[e] += a.bias.as<float>()[e];
    if (a.groups > 1) route::keep_groups(a, w);

    int32_t* chosen = a.chosen.row<int32_t>(row);
    float* weight = a.weight.row<float>(row);
    const int64_t top_k = a.chosen.shape[1];
    std::fill(w.taken.begin(), w.taken.end(), 0);
    double sum = 0;
    for (int64_t j = 0; j < top_k; ++j) {
        const size_t e = route::take_best(w.key, w.taken, 0, experts);
        chosen[j] = static_cast<int32_t>(e);
        sum += w.score[e];
    }
    // Scores may all have underflowed; dividing by this instead keeps zeros zeros.
    constexpr double kLeastSum = 1e-20;
    const double factor = a.scale / (a.normalise ? std::max(sum, kLeastSum) : 1.0);
    for (int64_t j = 0; j < top_k; ++j) {
        const auto e = static_cast<size_t>(chosen[j]);
        const double own = a.expert_scale ? a.expert_scale.as<float>()[e] : 1.0;
        weight[j] = static_cast<float>(w.score[e] * factor * own);
    }
}

}  // namespace exl3
