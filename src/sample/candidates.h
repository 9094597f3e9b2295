#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace exl3 {

constexpr float kNever = -std::numeric_limits<float>::infinity();  ///< logit of a removed token

/// Logits are clamped to this size on arrival, so that no step can overflow a float.
constexpr double kLogitLimit = 1e30;

/// The tokens that can still be drawn, in ascending order of id: every rule that breaks ties by
/// the lower id is then "the first one wins".
///
/// A list starts dense: entry i is token i and removed tokens stay in place with logit kNever. The
/// first step that removes many makes it compact. Steps accept both forms.
struct Candidates {
    std::vector<float> logit;
    std::vector<int32_t> id;  ///< token of each entry; meaningless while dense
    bool dense = true;
    /// The model's scale: a token's true logit is logit + offset. Temperature moves the largest
    /// logit to 0, so that neither tiny temperatures nor huge logits lose digits.
    double offset = 0;
    /// Work space of the steps, kept from token to token so that sampling does not allocate.
    std::vector<float> weight;
    std::vector<float> key;
    std::vector<uint32_t> order;
    std::vector<uint32_t> order_swap;

    size_t size() const { return logit.size(); }
    int32_t id_at(size_t i) const { return dense ? static_cast<int32_t>(i) : id[i]; }
    /// The entry of a token; size() if it is not there.
    size_t find(int32_t token) const;
};

/// Index of the largest logit, the first one on a tie; the list must not be empty.
size_t best_entry(const Candidates& c);
/// The largest logit.
float max_logit(std::span<const float> logits);

/// Fills c.weight with exp(logit - max logit), so probabilities are weight / sum; returns the sum.
/// The best token weighs exactly 1 and removed tokens 0.
double weigh(Candidates& c);

/// Makes the list compact and keeps the entries i for which keep(i) holds. Removed tokens go in
/// any case. c.weight is not carried along.
template <typename Keep>
void keep_if(Candidates& c, Keep keep) {
    if (c.dense) c.id.resize(c.size());
    size_t out = 0;
    for (size_t i = 0; i < c.size(); ++i) {
        const bool stays = c.logit[i] != kNever && keep(i);
        c.logit[out] = c.logit[i];
        c.id[out] = c.id_at(i);
        out += stays ? 1 : 0;
    }
    c.logit.resize(out);
    c.id.resize(out);
    c.dense = false;
}

/// Drops removed tokens from the list.
inline void compact(Candidates& c) {
    if (c.dense) keep_if(c, [](size_t) { return true; });
}

/// Where an ordered list of entries is cut: those before `threshold` stay, and of those that equal
/// it the first `ties`.
struct Cut {
    float threshold = 0;
    size_t ties = std::numeric_limits<size_t>::max();
};
/// Keeps logits above the threshold and the first ties.
void keep_largest(Candidates& c, Cut cut);
/// The cut that leaves exactly k entries, the largest; 0 < k < size().
Cut cut_by_count(const Candidates& c, size_t k);
/// Walks entries in ascending order of c.key (finite or +inf, one per entry), the first one first
/// on a tie, and stops as soon as the c.weight passed reaches `mass`. At least one is passed.
/// `least` is a lower bound of the keys, best their minimum.
Cut cut_by_mass(Candidates& c, float least, double mass);

/// Entries `c.order` in ascending order of `key`, stable.
void sort_by_key(Candidates& c, std::span<const float> key);

}  // namespace exl3
