#include <algorithm>
#include <cmath>

#include "sample/exp.h"
#include "sample/steps.h"

namespace exl3 {

namespace {

// How far below the best token top-p looks first, in nats.
constexpr float kDepth = 10;

// Sum of the weights that are at least `least`.
double mass_above(std::span<const float> weight, float least) {
    Sum4 sum;
    size_t i = 0;
    for (; i + 4 <= weight.size(); i += 4) {
        const F32x4 w = load4(&weight[i]);
        sum.add(w >= splat4(least) ? w : splat4(0.0f));
    }
    double rest = 0;
    for (; i < weight.size(); ++i) rest += weight[i] >= least ? weight[i] : 0.0f;
    return sum.total() + rest;
}

}  // namespace

void keep_top_k(Candidates& c, int k) {
    if (static_cast<size_t>(k) < c.size()) keep_largest(c, cut_by_count(c, static_cast<size_t>(k)));
}

void keep_top_p(Candidates& c, double p) {
    if (p >= 1) return;
    const double mass = p * weigh(c);
    const float most = max_logit(c.logit);
    // The likely tokens are few. If those within kDepth of the best suffice, the rest, usually all
    // but thousands of them, need no ordering.
    if (mass_above(c.weight, 4.6e-5f) >= mass) {  // a little above exp(-10)
        keep_largest(c, {most - kDepth});
        weigh(c);
    }
    c.key.resize(c.size());
    for (size_t i = 0; i < c.size(); ++i) c.key[i] = -c.logit[i];
    const Cut cut = cut_by_mass(c, -most, mass);
    keep_largest(c, {-cut.threshold, cut.ties});
}

void keep_min_p(Candidates& c, double q) {
    if (q <= 0) return;
    // p >= q max p, in logarithms. log(1) is 0, so q = 1 keeps exactly what equals the best.
    const double least = max_logit(c.logit) + std::log(q);
    keep_largest(c, {static_cast<float>(least)});
}

void keep_top_a(Candidates& c, double a) {
    if (a <= 0) return;
    // p >= a (max p)^2, where max p is 1 / total.
    const double least = a / weigh(c);
    keep_if(c, [&](size_t i) { return c.weight[i] >= least; });
}

void keep_typical(Candidates& c, double mass) {
    if (mass >= 1) return;
    compact(c);
    const double total = weigh(c), log_total = std::log(total);
    const float most = max_logit(c.logit);
    double entropy = 0;
    for (size_t i = 0; i < c.size(); ++i) {
        const double surprise = log_total - (c.logit[i] - most);
        entropy += c.weight[i] / total * surprise;
    }
    c.key.resize(c.size());
    for (size_t i = 0; i < c.size(); ++i) {
        const double surprise = log_total - (c.logit[i] - most);
        c.key[i] = static_cast<float>(std::abs(surprise - entropy));
    }
    Cut cut = cut_by_mass(c, 0, mass * total);
    keep_if(c, [&](size_t i) {
        if (c.key[i] == cut.threshold && cut.ties > 0) {
            --cut.ties;
            return true;
        }
        return c.key[i] < cut.threshold;
    });
}

void keep_tail_free(Candidates& c, double z) {
    if (z >= 1) return;
    compact(c);
    const size_t n = c.size();
    if (n < 3) return;
    weigh(c);
    c.key.resize(n);
    for (size_t i = 0; i < n; ++i) c.key[i] = -c.logit[i];
    sort_by_key(c, c.key);

    // The curvature of the sorted probabilities. Its scale cancels, so weights do.
    const auto curvature = [&](size_t i) {
        const double a = c.weight[c.order[i]], b = c.weight[c.order[i + 1]];
        return std::abs(a - 2 * b + c.weight[c.order[i + 2]]);
    };
    double total = 0;
    for (size_t i = 0; i + 2 < n; ++i) total += curvature(i);
    if (total == 0) return;
    size_t passed = 0;
    double sum = 0;
    for (; passed + 2 < n; ++passed) {
        sum += curvature(passed);
        if (sum > z * total) break;
    }
    // Curvature i belongs to the token in the middle of its three, hence one more.
    const size_t last = std::min(passed, n - 3);
    const uint32_t entry = c.order[last];
    const float threshold = c.logit[entry];
    size_t ties = 0;
    for (size_t i = 0; i <= last; ++i) ties += c.logit[c.order[i]] == threshold ? 1 : 0;
    keep_largest(c, {threshold, ties});
}

void keep_top_n_sigma(Candidates& c, double n) {
    if (n <= 0) return;
    compact(c);
    const float most = max_logit(c.logit);
    // Deviations from the largest logit, whose variance is the same, lose no digits to its size.
    double sum = 0, squares = 0;
    for (const float l : c.logit) {
        const double d = l - most;
        sum += d;
        squares += d * d;
    }
    const double count = static_cast<double>(c.size()), mean = sum / count;
    const double sigma = std::sqrt(std::max(0.0, squares / count - mean * mean));
    keep_largest(c, {static_cast<float>(most - n * sigma)});
}

}  // namespace exl3
