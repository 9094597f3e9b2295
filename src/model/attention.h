#pragma once
#include <optional>

#include "model/module.h"
#include "model/norm.h"
#include "model/rotation.h"

namespace exl3 {

/// Softmax attention over the paged cache: x becomes o_proj(attention(q, k, v)).
class Attention final : public Module {
public:
    /// @param layer  index of this layer in the cache
    Attention(Stream& s, const Checkpoint& c, const AttentionSpec& spec, int hidden, int layer);
    void forward(Stream& s, const Batch& b, View x) const override;
    bool add_to(Stream& s, const Batch& b, const Norm* norm, View x) const override;
    void each_linear(const LinearVisitor& visit) override;

private:
    /// From q, k and v as projected, in the workspace, to what o_proj reads.
    View attend(Stream& s, const Batch& b, View q, View k, View v) const;
    /// Norms, rotation and caching in one op. False, and nothing was done: a part has no such form.
    bool turn_and_append(Stream& s, const Batch& b, View q, View k, View v) const;
    void turn_queries(Stream& s, const Batch& b, View q) const;
    void append(Stream& s, const Batch& b, View k, View v) const;
    void gate(Stream& s, ConstView x, View y) const;

    AttentionSpec spec_;
    int layer_;
    LinearSlot q_, k_, v_, gate_, o_;  // empty where the spec has none
    std::unique_ptr<Linear> head_gate_;
    std::optional<Norm> q_norm_, k_norm_, v_norm_;
    Tensor sinks_;
    std::optional<Rotation> rope_;
};

}  // namespace exl3
