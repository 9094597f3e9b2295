#pragma once
#include <algorithm>
#include <cmath>

namespace exl3 {

/// How many tokens are worth guessing for one job, learned from how many held. A moving estimate of
/// the useful window that grows quickly and shrinks more slowly; a job whose guesses never hold is
/// only tried now and then.
class DraftWindow {
public:
    /// The next window, at most `most`.
    int next(int most) {
        if (most <= 0) return 0;
        if (!measured_) return most;
        if (estimate_ >= kSkipBelow)
            return std::clamp(static_cast<int>(std::ceil(estimate_)), 1, most);
        if (++skipped_ < kProbeEvery) return 0;
        skipped_ = 0;
        return std::min(2, most);
    }
    /// @param window    tokens guessed; 0 changes nothing
    /// @param accepted  those that held
    void learn(int window, int accepted) {
        if (window <= 0) return;
        const double useful = accepted + (accepted == window ? 1 : 0);
        // Overshoots on the way up: a longer window costs little where guesses hold.
        const double weight = useful > estimate_ ? 1.3 : 0.65;
        estimate_ = measured_ ? estimate_ + weight * (useful - estimate_) : useful;
        measured_ = true;
    }

private:
    static constexpr double kSkipBelow = 0.3;
    static constexpr int kProbeEvery = 16;  ///< rounds
    double estimate_ = 0;
    bool measured_ = false;
    int skipped_ = 0;
};

}  // namespace exl3
