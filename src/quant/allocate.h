#pragma once
#include <vector>

#include "model/spec.h"

namespace exl3 {

/// A matrix that competes for bits.
struct BitCandidate {
    LinearSpec spec;
    int layer = 0;  ///< of `layers`
    /// LinearFisher::sensitivity; for allocate_by_worth.
    double sensitivity = 0;
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

struct WorthOptions {
    double bits = 4;          ///< average over the decoder's matrices, 1 to 8
    int head_bits = 6;        ///< what the head adds to the budget, 1 to 8
    bool head_trades = true;  ///< the head competes too; else it keeps head_bits
};

/// Bits for each candidate so that the model's divergence, as its sensitivities predict it, is
/// least for the same total size: every matrix starts at one bit, and the budget is dealt out a bit
/// at a time to where it lessens the divergence most per bit of storage. Matrices of one group
/// share their bits, but q_proj may differ from k and v.
std::vector<int> allocate_by_worth(const std::vector<BitCandidate>& candidates,
                                   const WorthOptions& options);

/// Average bits over the decoder's matrices.
double average_bits(const std::vector<BitCandidate>& candidates, const std::vector<int>& bits);

}  // namespace exl3
