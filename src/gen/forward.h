#pragma once
#include <memory>
#include <span>
#include <vector>

#include "model/model.h"

namespace exl3 {

/// What one sequence contributes to a pass.
struct Feed {
    std::span<const int32_t> tokens;  ///< the next ones of the sequence
    std::span<const int32_t> drafts;  ///< guesses that follow them
    int64_t position = 0;             ///< of tokens[0]
    std::span<const int> pages;       ///< of the whole sequence
    int slot = 0;                     ///< of its recurrent state, if the model has one
    int logit_rows = 0;               ///< logits are wanted for the last so many tokens
};

struct ForwardLimits {
    int sequences = 0, rows = 0, logit_rows = 0;  ///< the most in one pass
    int pages = 0;                                ///< of one sequence
    int64_t rope_length = 0;                      ///< as Batch::rope_length
};

/// Runs passes of several sequences over one model and its cache. Allocates at construction only,
/// apart from the workspace of its stream, which grows to what the largest pass needs.
class Forward {
public:
    /// @param states  of recurrent layers; null: the model has none
    Forward(const Model& model, Stream& s, const PagedCache& cache, const ForwardLimits& limits,
            const StateCache* states = nullptr);

    /// Feeds the sequences and returns the logits of all wanted rows, (rows, vocab) f32 in host
    /// memory, in order of `feeds`; they stay until the next pass. Throws Error{out_of_memory} or
    /// Error{device}; then the pages hold nothing new that counts.
    ConstView run(std::span<const Feed> feeds);

private:
    ConstView upload(const std::vector<int32_t>& from, Shape shape);

    const Model& model_;
    Stream& stream_;
    const PagedCache& cache_;
    const StateCache* states_;
    ForwardLimits limits_;
    std::vector<int32_t> slots_, tokens_, positions_, q_start_, kv_len_, pages_;
    std::vector<float> logits_;
};

}  // namespace exl3
