#include <algorithm>
#include <cmath>

#include "sample/steps.h"

namespace exl3 {
namespace {

// How many tokens mirostat 1 keeps: the Zipf exponent s is fitted to the 100 most likely tokens,
// and a Zipf law of that exponent over `vocab` tokens has surprise mu at rank k.
// Source: Basu and others, Mirostat, arXiv 2007.14966, section 4.
double mirostat_rank(Candidates& c, double mu, int vocab) {
    Candidates top;
    top.logit = c.logit;
    top.id = c.id;
    top.dense = c.dense;
    compact(top);
    keep_top_k(top, 100);
    std::vector<float> sorted = top.logit;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    double products = 0, squares = 0;
    for (size_t i = 0; i + 1 < sorted.size(); ++i) {
        const double rank = static_cast<double>(i);
        const double t = std::log((rank + 2) / (rank + 1));
        const double b = static_cast<double>(sorted[i]) - sorted[i + 1];  // ln(p_i / p_{i+1})
        products += t * b;
        squares += t * t;
    }
    const double s = squares > 0 ? products / squares : 0;
    // Equally likely tokens: the surprise of a choice among k is log2 k.
    if (s <= 0) return std::exp2(mu);
    const double n = vocab, e = s - 1;
    // e / (1 - n^-e) tends to 1 / ln n.
    const double ratio = std::abs(e) < 1e-9 ? 1 / std::log(n) : e / -std::expm1(-e * std::log(n));
    return std::pow(ratio * std::exp2(mu), 1 / s);
}

}  // namespace

void keep_mirostat(Candidates& c, const SamplerParams& p, const SamplerMemory& memory, int vocab) {
    if (p.mirostat_mode == 1) {
        const double k = mirostat_rank(c, memory.mirostat_mu, vocab);
        const double most = static_cast<double>(c.size());
        // Not `k < most`: a rank that is not a number keeps everything.
        if (k < most) keep_top_k(c, std::max(1, static_cast<int>(k)));
        return;
    }
    // -log2 p <= mu, the best token in any case.
    const double least = std::min(1.0, weigh(c) * std::exp2(-memory.mirostat_mu));
    keep_if(c, [&](size_t i) { return c.weight[i] >= least; });
}

void update_mirostat(SamplerMemory& memory, const SamplerParams& p, double probability) {
    const double surprise = -std::log2(probability);
    memory.mirostat_mu += p.mirostat_eta * (p.mirostat_tau - surprise);
}

double apply_adaptive(Candidates& c, const SamplerParams& p, const SamplerMemory& memory) {
    const double average = memory.adaptive_sum / memory.adaptive_weight;
    const double goal = std::clamp(2 * p.adaptive_target - average, 0.0, 1.0);
    const double total = weigh(c);
    for (size_t i = 0; i < c.size(); ++i) {
        const double probability = c.weight[i] / total;
        const double x = std::abs(probability - goal) / 0.3;
        c.logit[i] = probability < 1e-8 ? kNever : static_cast<float>(5 - 10 * x * x / (1 + x));
    }
    return total;
}

void update_adaptive(SamplerMemory& memory, const SamplerParams& p, double probability) {
    memory.adaptive_sum = probability + p.adaptive_decay * memory.adaptive_sum;
    memory.adaptive_weight = 1 + p.adaptive_decay * memory.adaptive_weight;
}

SamplerMemory start_memory(const SamplerParams& p) {
    // As if tokens of exactly the target probability had been drawn for ever.
    const double history = 1 / (1 - std::min(p.adaptive_decay, 0.99));
    return {2 * p.mirostat_tau, p.adaptive_target * history, history};
}

}  // namespace exl3
