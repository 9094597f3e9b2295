#include "gen/ngram.h"

#include <algorithm>
#include <bit>

#include "base/random.h"

namespace exl3 {
namespace {

constexpr int32_t kNone = -1;
// Longer agreements are not told apart, and older occurrences are not looked at: bounds the time.
constexpr size_t kLongest = 32;
constexpr int kCandidates = 64;

}  // namespace

// Of the n-gram that ends before `end`.
size_t NgramIndex::bucket(std::span<const int32_t> sequence, size_t end) const {
    uint64_t h = 0;
    for (size_t i = end - static_cast<size_t>(options_.least); i < end; ++i)
        h = mix64(h + static_cast<uint32_t>(sequence[i]) + 1);
    return h & (newest_.size() - 1);
}

void NgramIndex::follow(std::span<const int32_t> sequence) {
    if (sequence.size() < size()) truncate(sequence, sequence.size());
    if (newest_.size() < sequence.size()) grow(sequence);
    while (size() < sequence.size()) {
        older_.push_back(kNone);
        const size_t end = size();
        if (end < static_cast<size_t>(options_.least)) continue;
        int32_t& newest = newest_[bucket(sequence, end)];
        older_.back() = newest;
        newest = static_cast<int32_t>(end);
    }
}

// Twice the room, so that this is rare; everything is entered anew.
void NgramIndex::grow(std::span<const int32_t> sequence) {
    newest_.assign(std::bit_ceil(std::max(2 * sequence.size(), expected_) + 64), kNone);
    older_.clear();
    older_.reserve(newest_.size());
}

void NgramIndex::truncate(std::span<const int32_t> sequence, size_t tokens) {
    for (; size() > tokens; older_.pop_back())
        if (size() >= static_cast<size_t>(options_.least))
            newest_[bucket(sequence, size())] = older_.back();
}

// Tokens before `end` that equal those at the end of the sequence.
size_t NgramIndex::agreement(std::span<const int32_t> sequence, size_t end) const {
    size_t n = 0;
    while (n < kLongest && n < end && sequence[end - 1 - n] == sequence[sequence.size() - 1 - n])
        ++n;
    return n;
}

void NgramIndex::propose(std::span<const int32_t> sequence, size_t most,
                         std::vector<int32_t>& out) const {
    const auto least = static_cast<size_t>(options_.least);
    if (sequence.size() != size() || sequence.size() < least || most == 0) return;
    struct Candidate {
        size_t end, agreement;
    };
    Candidate found[kCandidates];
    int count = 0;
    size_t longest = least;
    int32_t end = older_.back();
    for (int i = 0; i < kCandidates && end != kNone;
         ++i, end = older_[static_cast<size_t>(end) - 1]) {
        const size_t n = agreement(sequence, static_cast<size_t>(end));
        if (n < longest) continue;
        if (n > longest) count = 0;
        longest = n;
        found[count++] = {static_cast<size_t>(end), n};
    }
    if (count == 0) return;
    size_t best = found[0].end;
    if (options_.frequent) {
        int votes = 0;
        for (int i = 0; i < count; ++i) {
            const auto same = [&](const Candidate& c) {
                return sequence[c.end] == sequence[found[i].end];
            };
            const auto n = static_cast<int>(std::count_if(found, found + count, same));
            if (n > votes) votes = n, best = found[i].end;
        }
    }
    const size_t take = std::min(most, sequence.size() - best);
    out.insert(out.end(), sequence.begin() + static_cast<std::ptrdiff_t>(best),
               sequence.begin() + static_cast<std::ptrdiff_t>(best + take));
}

}  // namespace exl3
