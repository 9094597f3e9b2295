#include <algorithm>
#include <cmath>

#include "sample/steps.h"

namespace exl3 {
namespace {

// repeat[i]: how many tokens, read backwards from the end, equal those read backwards from i
// tokens before the end (the Z function of the reversed history). Returns the greatest.
size_t measure_repeats(std::span<const int32_t> history, std::vector<size_t>& repeat) {
    const size_t n = history.size();
    const auto reversed = [&](size_t i) { return history[n - 1 - i]; };
    repeat.assign(n, 0);
    size_t most = 0;
    // [left, right) is the stretch furthest to the right known to equal the beginning.
    for (size_t i = 1, left = 0, right = 0; i < n; ++i) {
        size_t length = i < right ? std::min(right - i, repeat[i - left]) : 0;
        while (i + length < n && reversed(length) == reversed(i + length)) ++length;
        repeat[i] = length;
        most = std::max(most, length);
        if (i + length > right) {
            left = i;
            right = i + length;
        }
    }
    return most;
}

bool contains_breaker(const std::string& piece, std::span<const std::string> breakers) {
    return std::any_of(breakers.begin(), breakers.end(), [&](const std::string& b) {
        return !b.empty() && piece.find(b) != std::string::npos;
    });
}

}  // namespace

size_t tokens_after_breaker(std::span<const int32_t> history, const SamplerVocab& vocab,
                            std::span<const std::string> breakers) {
    // Breakers are looked for in the text, so it does not matter which tokens they are made of.
    std::string text;
    std::vector<size_t> start;  // of each token in the text
    for (const int32_t token : history) {
        start.push_back(text.size());
        const bool known = token >= 0 && static_cast<size_t>(token) < vocab.pieces.size();
        // A byte that is not in UTF-8 stands for what is not text, such as an image.
        text += known ? vocab.pieces[static_cast<size_t>(token)] : "\xff";
    }
    size_t end = 0;  // of the breaker that ends last
    for (const std::string& b : breakers) {
        const size_t at = b.empty() ? std::string::npos : text.rfind(b);
        if (at != std::string::npos) end = std::max(end, at + b.size());
    }
    return static_cast<size_t>(start.end() - std::lower_bound(start.begin(), start.end(), end));
}

void apply_dry(Candidates& c, const SamplerParams& p, const SamplerState& state,
               const SamplerVocab* vocab) {
    std::span<const int32_t> history = state.history;
    if (p.dry_range >= 0)
        history = history.last(std::min(history.size(), static_cast<size_t>(p.dry_range)));
    const size_t allowed = static_cast<size_t>(std::max(p.dry_allowed_length, 1));
    static thread_local std::vector<size_t> repeat;  // scratch
    size_t limit = measure_repeats(history, repeat);
    if (limit < allowed) return;
    if (vocab) {
        // Only a breaker that ends within the longest phrase matters.
        size_t longest = 0;
        for (const std::string& b : p.dry_sequence_breakers) longest = std::max(longest, b.size());
        const auto window = history.last(std::min(history.size(), limit + longest));
        limit = std::min(limit, tokens_after_breaker(window, *vocab, p.dry_sequence_breakers));
        if (limit < allowed) return;
    }

    // Each token that would repeat a phrase, with the length of the phrase before it.
    std::vector<std::pair<int32_t, size_t>> found;
    for (size_t i = 1; i < history.size(); ++i)
        if (repeat[i] >= allowed)
            found.emplace_back(history[history.size() - i], std::min(repeat[i], limit));
    std::sort(found.begin(), found.end());

    // Past this exponent a float would overflow.
    const double most = p.dry_base > 1 ? 88.72 / std::log(p.dry_base) : 0;
    for (size_t i = 0; i < found.size(); ++i) {
        const auto [token, length] = found[i];
        if (i + 1 < found.size() && found[i + 1].first == token) continue;  // a longer one follows
        const size_t entry = c.find(token);
        if (entry == c.size() || c.logit[entry] == kNever) continue;
        if (vocab && static_cast<size_t>(token) < vocab->pieces.size() &&
            contains_breaker(vocab->pieces[static_cast<size_t>(token)], p.dry_sequence_breakers))
            continue;
        const double excess = static_cast<double>(length) - p.dry_allowed_length;
        const double power = std::pow(p.dry_base, std::min(excess, most));
        const double penalty = std::min(p.dry_multiplier * power, kLogitLimit);
        c.logit[entry] = static_cast<float>(c.logit[entry] - penalty);
    }
}

}  // namespace exl3
