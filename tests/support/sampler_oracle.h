#pragma once
// The samplers once more, written straight from their definitions: whole sorts, doubles and no
// cleverness. Nothing here is shared with src/sample.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace exl3::test {

struct OracleToken {
    int32_t id = 0;
    double logit = 0;
};
using OracleList = std::vector<OracleToken>;  // tokens that are left, in any order

inline OracleList oracle_list(std::span<const float> logits) {
    OracleList list;
    for (size_t i = 0; i < logits.size(); ++i)
        if (!std::isnan(logits[i]) && !(std::isinf(logits[i]) && logits[i] < 0))
            list.push_back({static_cast<int32_t>(i), logits[i]});
    return list;
}

inline void sort_descending(OracleList& list) {
    std::sort(list.begin(), list.end(), [](const OracleToken& a, const OracleToken& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
}

inline std::vector<double> softmax(const OracleList& list) {
    double most = -1e300, total = 0;
    for (const auto& t : list) most = std::max(most, t.logit);
    std::vector<double> p;
    for (const auto& t : list) p.push_back(std::exp(t.logit - most));
    for (const double x : p) total += x;
    for (double& x : p) x /= total;
    return p;
}

inline double entropy(const std::vector<double>& p) {
    double h = 0;
    for (const double x : p)
        if (x > 0) h -= x * std::log(x);
    return h;
}

inline OracleList oracle_top_k(OracleList list, size_t k) {
    sort_descending(list);
    if (list.size() > k) list.resize(k);
    return list;
}

inline OracleList oracle_top_p(OracleList list, double top_p) {
    sort_descending(list);
    const auto p = softmax(list);
    double sum = 0;
    for (size_t i = 0; i < list.size(); ++i) {
        sum += p[i];
        if (sum >= top_p) {
            list.resize(i + 1);
            break;
        }
    }
    return list;
}

inline OracleList oracle_min_p(OracleList list, double min_p) {
    const auto p = softmax(list);
    const double most = *std::max_element(p.begin(), p.end());
    OracleList kept;
    for (size_t i = 0; i < list.size(); ++i)
        if (p[i] >= min_p * most) kept.push_back(list[i]);
    return kept;
}

inline OracleList oracle_top_a(OracleList list, double a) {
    const auto p = softmax(list);
    const double most = *std::max_element(p.begin(), p.end());
    OracleList kept;
    for (size_t i = 0; i < list.size(); ++i)
        if (p[i] >= a * most * most) kept.push_back(list[i]);
    return kept;
}

inline OracleList oracle_typical(OracleList list, double mass) {
    const auto p = softmax(list);
    const double h = entropy(p);
    std::vector<size_t> order(list.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto distance = [&](size_t i) { return std::abs(-std::log(p[i]) - h); };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        const double x = distance(a), y = distance(b);
        // Equal logits are equally typical, whatever the rounding.
        return list[a].logit != list[b].logit ? x < y : list[a].id < list[b].id;
    });
    OracleList kept;
    double sum = 0;
    for (const size_t i : order) {
        kept.push_back(list[i]);
        sum += p[i];
        if (sum >= mass) break;
    }
    return kept;
}

inline OracleList oracle_tail_free(OracleList list, double z) {
    sort_descending(list);
    if (list.size() < 3) return list;
    const auto p = softmax(list);
    std::vector<double> curvature;
    double total = 0, sum = 0;
    for (size_t i = 0; i + 2 < p.size(); ++i) {
        curvature.push_back(std::abs((p[i] - p[i + 1]) - (p[i + 1] - p[i + 2])));
        total += curvature.back();
    }
    if (total == 0) return list;
    for (size_t i = 0; i < curvature.size(); ++i) {
        sum += curvature[i] / total;
        if (sum > z) {
            list.resize(i + 1);
            return list;
        }
    }
    list.resize(p.size() - 2);
    return list;
}

inline OracleList oracle_top_n_sigma(OracleList list, double n) {
    double mean = 0, variance = 0, most = -1e300;
    for (const auto& t : list) mean += t.logit / static_cast<double>(list.size());
    for (const auto& t : list) {
        variance += (t.logit - mean) * (t.logit - mean) / static_cast<double>(list.size());
        most = std::max(most, t.logit);
    }
    OracleList kept;
    for (const auto& t : list)
        if (t.logit >= most - n * std::sqrt(variance)) kept.push_back(t);
    return kept;
}

/// Longest phrase at the end of `history` that also occurs before, followed by `token`, of at most
/// `limit` tokens: tries every place and every length.
inline int oracle_phrase(const std::vector<int32_t>& history, int32_t token, int limit) {
    const int n = static_cast<int>(history.size());
    const auto at = [&](int i) { return history[static_cast<size_t>(i)]; };
    int best = 0;
    for (int follower = 1; follower < n; ++follower) {
        if (at(follower) != token) continue;
        int length = 0;
        while (length < limit && follower - 1 - length >= 0 &&
               at(follower - 1 - length) == at(n - 1 - length))
            ++length;
        best = std::max(best, length);
    }
    return best;
}

}  // namespace exl3::test
