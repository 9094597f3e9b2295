#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "gen/job.h"

namespace exl3 {

/// Notices that the last tokens of a text are nothing but one part again and again.
class LoopDetector {
public:
    explicit LoopDetector(const LoopLimit& limit)
        : window_(static_cast<size_t>(std::max(limit.window, 0))),
          runs_(window_ / static_cast<size_t>(std::max(limit.repetitions, 2))) {}

    /// Takes the newest token of `output`. True: the window is full of repetitions.
    bool push(std::span<const int32_t> output) {
        bool loops = false;
        const size_t n = output.size();
        for (size_t period = 1; period <= runs_.size(); ++period) {
            size_t& run = runs_[period - 1];  // tokens in a row that equal the one a period before
            run = n > period && output[n - 1] == output[n - 1 - period] ? run + 1 : 0;
            loops = loops || (n >= window_ && run + period >= window_);
        }
        return loops;
    }
    /// The text was cut to `output`.
    void rewind(std::span<const int32_t> output) {
        std::fill(runs_.begin(), runs_.end(), size_t{0});
        for (size_t n = output.size() - std::min(output.size(), window_); n < output.size(); ++n)
            push(output.first(n + 1));
    }

private:
    size_t window_;
    std::vector<size_t> runs_;
};

}  // namespace exl3
