#include "sample/candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "sample/exp.h"

namespace exl3 {
namespace {

// Entries looked at together when most of them will be skipped.
constexpr size_t kBlock = 16;
// Keys are logarithms: 64 bins per factor e over 32 nats, the last bin takes the rest.
constexpr size_t kBins = 2048;

float block_max(const float* p) {
    const F32x4 m = max4(max4(load4(p), load4(p + 4)), max4(load4(p + 8), load4(p + 12)));
    return std::max(std::max(m[0], m[1]), std::max(m[2], m[3]));
}

// Bits whose unsigned order is the order of the floats; adding 0 turns -0 into 0.
uint32_t sortable(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

}  // namespace

size_t Candidates::find(int32_t token) const {
    if (dense) return std::min(static_cast<size_t>(static_cast<uint32_t>(token)), size());
    const auto it = std::lower_bound(id.begin(), id.end(), token);
    return it != id.end() && *it == token ? static_cast<size_t>(it - id.begin()) : size();
}

float max_logit(std::span<const float> logits) {
    F32x4 most = splat4(kNever);
    size_t i = 0;
    for (; i + 4 <= logits.size(); i += 4) most = max4(load4(&logits[i]), most);
    float result = std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
    for (; i < logits.size(); ++i) result = std::max(result, logits[i]);
    return result;
}

size_t best_entry(const Candidates& c) {
    const float most = max_logit(c.logit);
    return static_cast<size_t>(std::find(c.logit.begin(), c.logit.end(), most) - c.logit.begin());
}

double weigh(Candidates& c) {
    const F32x4 most = splat4(max_logit(c.logit));
    const size_t n = c.size(), whole = n / 4 * 4;
    c.weight.resize(n);
    Sum4 sum;
    for (size_t i = 0; i < whole; i += 4) {
        const F32x4 w = exp_negative(load4(&c.logit[i]) - most);
        store4(&c.weight[i], w);
        sum.add(w);
    }
    if (whole < n) {
        F32x4 rest = splat4(kNever);
        std::memcpy(&rest, &c.logit[whole], (n - whole) * sizeof(float));
        const F32x4 w = exp_negative(rest - most);
        std::memcpy(&c.weight[whole], &w, (n - whole) * sizeof(float));
        sum.add(w);
    }
    return sum.total();
}

void keep_largest(Candidates& c, Cut cut) {
    if (c.dense) c.id.resize(c.size());
    size_t out = 0, ties = cut.ties, i = 0;
    const auto visit = [&](size_t entry) {
        const float l = c.logit[entry];
        if (l < cut.threshold || l == kNever) return;
        if (l == cut.threshold && ties-- == 0) {
            ties = 0;
            return;
        }
        c.id[out] = c.id_at(entry);
        c.logit[out++] = l;
    };
    for (; i + kBlock <= c.size(); i += kBlock) {
        if (block_max(&c.logit[i]) < cut.threshold) continue;
        for (size_t j = i; j < i + kBlock; ++j) visit(j);
    }
    for (; i < c.size(); ++i) visit(i);
    c.logit.resize(out);
    c.id.resize(out);
    c.dense = false;
}

Cut cut_by_count(const Candidates& c, size_t k) {
    // The k largest values so far, and some more: once the buffer is full it is cut back to k, and
    // from then on what does not exceed the smallest of them need not be looked at.
    static thread_local std::vector<float> top;  // scratch
    top.clear();
    const size_t capacity = std::max(2 * k, size_t{64});
    float bar = kNever;
    const auto cut_back = [&] {
        std::nth_element(top.begin(), top.begin() + static_cast<ptrdiff_t>(k) - 1, top.end(),
                         std::greater<>());
        top.resize(k);
        bar = top[k - 1];
    };
    const auto visit = [&](float l) {
        if (!(l > bar)) return;
        top.push_back(l);
        if (top.size() == capacity) cut_back();
    };
    size_t i = 0;
    for (; i + kBlock <= c.size(); i += kBlock) {
        if (block_max(&c.logit[i]) <= bar) continue;
        for (size_t j = i; j < i + kBlock; ++j) visit(c.logit[j]);
    }
    for (; i < c.size(); ++i) visit(c.logit[i]);
    // Fewer than k tokens are left in a dense list: all of them stay.
    if (top.size() < k) return {kNever};
    cut_back();
    const auto above = std::count_if(top.begin(), top.end(), [&](float l) { return l > bar; });
    return {bar, k - static_cast<size_t>(above)};
}

Cut cut_by_mass(Candidates& c, float least, double mass) {
    // A histogram over the keys finds the bin in which the mass is reached; only that one is
    // sorted.
    const auto bin_of = [&](float key) {
        return static_cast<size_t>(std::min((key - least) * 64.0f, static_cast<float>(kBins - 1)));
    };
    std::array<double, kBins> bins{};
    for (size_t i = 0; i < c.size(); ++i) bins[bin_of(c.key[i])] += c.weight[i];
    double passed = 0;
    size_t bin = 0;
    while (bin < kBins && (bins[bin] == 0 || passed + bins[bin] < mass)) passed += bins[bin++];
    if (bin == kBins) return {std::numeric_limits<float>::infinity()};

    static thread_local Candidates inside;  // scratch
    static thread_local std::vector<uint32_t> entry;
    inside.key.clear();
    entry.clear();
    for (size_t i = 0; i < c.size(); ++i) {
        if (bin_of(c.key[i]) != bin) continue;
        inside.key.push_back(c.key[i]);
        entry.push_back(static_cast<uint32_t>(i));
    }
    sort_by_key(inside, inside.key);
    Cut cut{0, 0};
    for (const uint32_t i : inside.order) {
        cut.ties = inside.key[i] == cut.threshold ? cut.ties + 1 : 1;
        cut.threshold = inside.key[i];
        passed += c.weight[entry[i]];
        if (passed >= mass) break;
    }
    return cut;
}

void sort_by_key(Candidates& c, std::span<const float> key) {
    const size_t n = key.size();
    c.order.resize(n);
    std::iota(c.order.begin(), c.order.end(), 0u);
    if (n < 2048) {
        std::sort(c.order.begin(), c.order.end(), [&](uint32_t a, uint32_t b) {
            return key[a] != key[b] ? key[a] < key[b] : a < b;
        });
        return;
    }
    // Radix sort, least significant digit first: three passes of 11 bits.
    c.order_swap.resize(n);
    for (const int shift : {0, 11, 22}) {
        const auto digit = [&](uint32_t i) { return sortable(key[i]) >> shift & 2047u; };
        std::array<uint32_t, 2049> start{};
        for (size_t i = 0; i < n; ++i) ++start[digit(static_cast<uint32_t>(i)) + 1];
        std::partial_sum(start.begin(), start.end(), start.begin());
        for (const uint32_t i : c.order) c.order_swap[start[digit(i)]++] = i;
        c.order.swap(c.order_swap);
    }
}

}  // namespace exl3
