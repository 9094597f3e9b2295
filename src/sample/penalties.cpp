#include <algorithm>

#include "sample/steps.h"

namespace exl3 {
namespace {

// How a token occurs in the window: greatest strength and sum of strengths.
struct Seen {
    double most = 0;
    double total = 0;
};

// Counts occurrences by token. Dense over the vocabulary and emptied through the list of tokens it
// met, so a window costs its own length only.
class Counter {
public:
    void count(std::span<const int32_t> history, const SamplerParams& p, size_t vocab) {
        for (const int32_t token : tokens_) seen_[static_cast<size_t>(token)] = {};
        tokens_.clear();
        if (seen_.size() < vocab) seen_.resize(vocab);
        const auto length = static_cast<int64_t>(history.size());
        const int64_t full = p.penalty_range < 0 ? length : p.penalty_range;
        const int64_t reach = std::min(length, full + p.repetition_decay);
        for (int64_t distance = 1; distance <= reach; ++distance) {
            const int32_t token = history[static_cast<size_t>(length - distance)];
            if (token < 0 || static_cast<size_t>(token) >= vocab) continue;
            const double strength =
                distance <= full ? 1
                                 : 1 - static_cast<double>(distance - full) / p.repetition_decay;
            Seen& s = seen_[static_cast<size_t>(token)];
            if (s.total == 0 && strength > 0) tokens_.push_back(token);
            s.most = std::max(s.most, strength);
            s.total += strength;
        }
    }

    template <typename Change>
    void apply(Candidates& c, Change change) const {
        for (const int32_t token : tokens_) {
            const size_t i = c.find(token);
            if (i == c.size() || c.logit[i] == kNever) continue;
            const double l = c.logit[i] + c.offset;
            c.logit[i] =
                static_cast<float>(change(l, seen_[static_cast<size_t>(token)]) - c.offset);
        }
    }

private:
    std::vector<Seen> seen_;
    std::vector<int32_t> tokens_;
};

}  // namespace

void apply_penalties(Candidates& c, const SamplerParams& p, const SamplerState& state) {
    if (c.size() == 0) return;
    // Scratch, not state: every call starts by emptying it.
    static thread_local Counter counter;
    const size_t vocab = static_cast<size_t>(c.id_at(c.size() - 1)) + 1;
    const std::span<const int32_t> all = state.history;
    const auto output = all.subspan(std::min(state.prompt_tokens, all.size()));

    if (p.repetition_penalty != 1) {
        counter.count(all, p, vocab);
        counter.apply(c, [&](double l, const Seen& s) {
            const double full = l > 0 ? l / p.repetition_penalty : l * p.repetition_penalty;
            return (1 - s.most) * l + s.most * full;
        });
    }
    if (p.presence_penalty != 0 || p.frequency_penalty != 0) {
        counter.count(p.penalize_prompt ? all : output, p, vocab);
        counter.apply(c, [&](double l, const Seen& s) {
            return l - p.frequency_penalty * s.total - p.presence_penalty * s.most;
        });
    }
}

}  // namespace exl3
