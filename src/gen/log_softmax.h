#pragma once
#include <cstdint>
#include <span>

namespace exl3 {

/// The distribution that a row of logits stands for, in f64. Refers to the logits it was given.
class LogSoftmax {
public:
    /// @param logits  one row; must outlive this object's use
    void set(std::span<const float> logits);
    bool finite() const { return finite_; }  ///< no logit is NaN or infinite
    bool holds(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < logits_.size(); }
    /// Natural log of the probability of an id; finite() must hold.
    double log_p(int32_t id) const {
        return static_cast<double>(logits_[static_cast<size_t>(id)]) - log_sum_;
    }
    int32_t best() const { return best_; }  ///< the most likely id, the lowest on a tie
    std::span<const float> logits() const { return logits_; }

private:
    std::span<const float> logits_;
    double log_sum_ = 0;
    int32_t best_ = 0;
    bool finite_ = false;
};

/// KL(p || q) in nats, at least 0. Both must be finite() and of one size.
double kl_divergence(const LogSoftmax& p, const LogSoftmax& q);

}  // namespace exl3
