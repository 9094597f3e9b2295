#pragma once
#include <vector>

#include "model/spec.h"

namespace exl3 {

/// A matrix that competes for bits.
struct BitCandidate {
    LinearSpec spec;
    int layer = 0;  ///< of `layers`
};

struct AllocateOptions {
    double bits = 4;    ///< average over the decoder's matrices, 1 to 8; trellis bits alone
    int head_bits = 6;  ///< of the output head, 1 to 8
    int layers = 0;
    int max_extra = 0;  ///< --hq: attention groups may end this much above the floor (not counted)
};

/// Weights of a matrix with both sizes padded to multiples of 128, as they are stored.
int64_t padded_numel(const LinearSpec& spec);

/// Bits for each candidate, in their order. Every group starts at floor(bits); spare budget is
/// dealt out a bit at a time to whole groups: higher priority first, then layers nearer an end of
/// the stack. Groups share their bits. The head stands outside the budget.
std::vector<int> allocate_bits(const std::vector<BitCandidate>& candidates,
                               const AllocateOptions& options);

/// Average bits over the decoder's matrices.
double average_bits(const std::vector<BitCandidate>& candidates, const std::vector<int>& bits);

}  // namespace exl3
