#pragma once
#include <memory>
#include <span>
#include <vector>

#include "model/model.h"

namespace exl3 {

/// One decoding step, a row for each of `sequences`, recorded once and run again from then on. All
/// that changes from step to step is in device memory, so that a GPU takes a step with one launch
/// and, when it also chooses the tokens, takes the next without hearing from the host.
/// Uses its stream alone; goes before stream, model and caches.
class DecodeStep {
public:
    struct Options {
        int sequences = 1;
        std::span<const int32_t> pages;  ///< (sequences, pages each): physical page of each logical
        int64_t rope_length = 0;
        bool choose = false;  ///< each step ends with the most probable tokens as the next's input
    };
    /// True if steps of this model can be recorded: nothing in them depends on the request.
    static bool supports(const ModelSpec& spec);
    /// Throws Error{out_of_memory}.
    DecodeStep(const Model& model, Stream& s, const PagedCache& cache, const StateCache& states,
               const Options& options);

    /// What the next step reads: a token of each sequence and its position.
    void set(std::span<const int32_t> tokens, std::span<const int32_t> positions);
    /// Queues a step.
    void run();
    /// (sequences, vocab) f32 of the last step, in device memory.
    ConstView logits() const { return logits_.view; }
    /// The tokens that the last `steps` steps chose, (steps, sequences), oldest first. Waits for
    /// the stream. At most kLog steps; the positions of all sequences must be those of the first.
    std::vector<int32_t> chosen(int steps);

    static constexpr int kLog = 64;  ///< steps whose tokens are kept

private:
    void queue();
    const Model& model_;
    Stream& stream_;
    const PagedCache& cache_;
    const StateCache& states_;
    Options options_;
    Tensor rows_;  // (3, sequences) i32: tokens, positions, cached lengths
    Tensor q_start_, pages_, slots_, log_, x_, logits_;
    std::unique_ptr<Graph> graph_;
    int64_t position_ = 0;  // of the first sequence, after the last step queued
};

}  // namespace exl3
