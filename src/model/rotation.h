#pragma once
#include "model/module.h"

namespace exl3 {

/// Rotates queries or keys as a RopeSpec says.
class Rotation {
public:
    Rotation(Stream& s, const RopeSpec& spec);
    /// @param heads  (tokens, heads, head_dim) f32, in place
    /// @param query  also scale by position, where the spec does that
    void forward(Stream& s, const Batch& b, View heads, bool query) const;

    const RopeSpec& spec() const { return spec_; }
    /// (dims / 2) f32; empty where the table depends on the length of the request.
    ConstView inv_freq() const { return inv_freq_.view; }
    float attention_factor() const { return attention_factor_; }

private:
    RopeSpec spec_;
    Tensor inv_freq_;  // empty where it depends on the length of the request
    float attention_factor_ = 1;
};

}  // namespace exl3
