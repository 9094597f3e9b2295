#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/random.h"
#include "sample/steps.h"

namespace exl3 {
namespace {

double gumbel(uint64_t bits) {
    return -std::log(-std::log(to_unit(bits)));
}

// gumbel(u) <= -ln(1 - u), and the leading one bits of u say how small 1 - u can be: an upper
// bound of the noise without a logarithm, by the number of those bits.
const std::array<float, 65> kGumbelBound = [] {
    std::array<float, 65> bound{};
    for (size_t ones = 0; ones < bound.size(); ++ones)
        bound[ones] = static_cast<float>(static_cast<double>(ones + 1) * std::log(2.0) + 1e-4);
    return bound;
}();

}  // namespace

size_t draw(const Candidates& c, uint64_t seed, uint64_t position) {
    size_t winner = best_entry(c);
    if (c.size() == 1) return winner;
    const auto noise = [&](size_t i) {
        return noise64(seed, position, static_cast<uint64_t>(c.id_at(i)));
    };
    double best = c.logit[winner] + gumbel(noise(winner));
    for (size_t i = 0; i < c.size(); ++i) {
        // Most tokens are far behind and cannot win with any noise, or not with theirs.
        if (c.logit[i] + kGumbelBound[53] < best) continue;
        const uint64_t bits = noise(i);
        if (c.logit[i] + kGumbelBound[static_cast<size_t>(std::countl_one(bits))] < best) continue;
        const double value = c.logit[i] + gumbel(bits);
        if (value > best || (value == best && i < winner)) {
            best = value;
            winner = i;
        }
    }
    return winner;
}

size_t draw_skewed(Candidates& c, double r, double skew) {
    compact(c);
    const double total = weigh(c);
    c.key.resize(c.size());
    for (size_t i = 0; i < c.size(); ++i) c.key[i] = -c.logit[i];
    sort_by_key(c, c.key);
    double left = std::pow(r, std::exp(-skew)) * total;
    for (const uint32_t i : c.order) {
        left -= c.weight[i];
        if (left < 0) return i;
    }
    return c.order.back();  // rounding
}

}  // namespace exl3
