#include <cmath>

#include "sample/steps.h"

namespace exl3 {

void apply_xtc(Candidates& c, const SamplerParams& p, const SamplerVocab* vocab, double roll) {
    const double total = weigh(c);
    const double least = p.xtc_threshold * total;
    // Top choices, of which the least likely stays; on a tie the one of highest id.
    static thread_local std::vector<size_t> top;
    top.clear();
    size_t stays = 0;
    for (size_t i = 0; i < c.size(); ++i) {
        if (c.logit[i] == kNever || c.weight[i] < least) continue;
        if (vocab && vocab->xtc_protected.allows(c.id_at(i))) continue;
        if (top.empty() || c.logit[i] <= c.logit[stays]) stays = i;
        top.push_back(i);
    }
    if (top.size() < 2) return;

    double change = kNever;  // added to the logits of the others
    if (p.xtc_random) {
        if (roll >= p.xtc_probability) return;
    } else if (p.xtc_probability < 1) {
        // The average over rolls: with probability P the excluded mass m goes to the rest.
        double mass = 0;
        for (const size_t i : top) mass += i == stays ? 0 : c.weight[i] / total;
        const double chance = p.xtc_probability;
        change = std::log((1 - chance) / (1 + chance * mass / (1 - mass)));
    }
    for (const size_t i : top)
        if (i != stays) c.logit[i] = static_cast<float>(c.logit[i] + change);
}

}  // namespace exl3
