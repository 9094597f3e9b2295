#include "quant/allocate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "quant/target_scale.h"

namespace exl3 {
namespace {

struct Group {
    std::vector<size_t> members;
    int64_t numel = 0;
    int priority = 0, depth = 0, layer = 0;  // depth: distance to the nearer end of the stack
    int bits = 0;
};

/// Matrices that share their bits, and what another bit is worth.
struct Priced {
    std::vector<size_t> members;
    int64_t numel = 0;
    double sensitivity = 0;
    int bits = 1;
    /// Divergence that one more bit takes away, per bit of storage.
    double worth() const {
        return sensitivity * (gaussian_error(bits) - gaussian_error(bits + 1)) /
               static_cast<double>(numel);
    }
};

/// Matrices of one name share their bits: those that other engines run in one kernel. There k and v
/// are one, and q stands alone.
std::string priced_with(const LinearSpec& spec) {
    const bool alone = spec.head || spec.key.str().ends_with(".q_proj");
    return alone ? spec.key.str() : spec.group;
}

std::vector<Group> make_groups(const std::vector<BitCandidate>& candidates, int layers, int base) {
    std::map<std::string, size_t> index;
    std::vector<Group> groups;
    for (size_t i = 0; i < candidates.size(); ++i) {
        const BitCandidate& c = candidates[i];
        if (c.spec.head) continue;
        const auto [it, fresh] = index.try_emplace(c.spec.group, groups.size());
        if (fresh) groups.emplace_back();
        Group& g = groups[it->second];
        g.members.push_back(i);
        g.numel += padded_numel(c.spec);
        g.priority = c.spec.priority;
        g.layer = c.layer;
        g.depth = std::min(c.layer, layers - 1 - c.layer);
        g.bits = base;
    }
    return groups;
}

}  // namespace

int64_t padded_numel(const LinearSpec& spec) {
    const auto padded = [](int64_t n) { return (n + 127) / 128 * 128; };
    return padded(spec.in) * padded(spec.out);
}

std::vector<int> allocate_bits(const std::vector<BitCandidate>& candidates,
                               const AllocateOptions& options) {
    const int base = static_cast<int>(std::floor(options.bits));
    std::vector<Group> groups = make_groups(candidates, options.layers, base);
    int64_t total = 0;
    for (const Group& g : groups) total += g.numel;
    // A hair of slack so that 3.7 asked for as a decimal fraction is not missed by rounding.
    int64_t spare = static_cast<int64_t>(std::floor(
        (options.bits - base) * static_cast<double>(total) + 1e-6 * static_cast<double>(total)));

    std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
        return std::tuple(-a.priority, a.depth, a.layer) <
               std::tuple(-b.priority, b.depth, b.layer);
    });
    for (bool gave = true; gave;) {
        gave = false;
        for (Group& g : groups)
            if (g.bits < 8 && g.numel <= spare) {
                ++g.bits;
                spare -= g.numel;
                gave = true;
            }
    }
    std::vector<int> bits(candidates.size(), options.head_bits);
    for (const Group& g : groups) {
        const int floor_bits = g.priority >= 2 ? std::min(base + options.max_extra, 8) : 0;
        for (const size_t i : g.members) bits[i] = std::max(g.bits, floor_bits);
    }
    return bits;
}

std::vector<int> allocate_by_worth(const std::vector<BitCandidate>& candidates,
                                   const WorthOptions& options) {
    constexpr int kMost = 8;
    std::map<std::string, Priced> groups;
    double budget = 0;
    for (size_t i = 0; i < candidates.size(); ++i) {
        const BitCandidate& c = candidates[i];
        const int64_t numel = padded_numel(c.spec);
        if (c.spec.head && !options.head_trades) continue;
        budget += static_cast<double>(numel) * (c.spec.head ? options.head_bits : options.bits);
        Priced& g = groups[priced_with(c.spec)];
        g.members.push_back(i);
        g.numel += numel;
        g.sensitivity += c.sensitivity;
        budget -= static_cast<double>(numel);
    }
    budget += 1e-6 * budget;  // 3.7 asked for as a decimal fraction is not missed by rounding
    for (;;) {
        Priced* best = nullptr;
        for (auto& [name, g] : groups)
            if (g.bits < kMost && static_cast<double>(g.numel) <= budget &&
                (!best || g.worth() > best->worth()))
                best = &g;
        if (!best) break;
        ++best->bits;
        budget -= static_cast<double>(best->numel);
    }
    std::vector<int> bits(candidates.size(), options.head_bits);
    for (const auto& [name, g] : groups)
        for (const size_t i : g.members) bits[i] = g.bits;
    return bits;
}

double average_bits(const std::vector<BitCandidate>& candidates, const std::vector<int>& bits) {
    double sum = 0, weights = 0;
    for (size_t i = 0; i < candidates.size(); ++i) {
        if (candidates[i].spec.head) continue;
        const auto n = static_cast<double>(padded_numel(candidates[i].spec));
        sum += n * bits[i];
        weights += n;
    }
    return weights > 0 ? sum / weights : 0;
}

}  // namespace exl3
