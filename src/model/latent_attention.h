#pragma once
#include <optional>

#include "model/module.h"
#include "model/norm.h"
#include "model/rotation.h"

namespace exl3 {

/// Multi-head latent attention over the paged cache. A token's row in the cache is [rotated key
/// part | latent vector], key and value of every head at once: queries are taken into the latent
/// space before, results out of it after (the "absorbed" form).
class LatentAttention final : public Module {
public:
    /// @param layer  index of this layer in the cache
    LatentAttention(Stream& s, const Checkpoint& c, const LatentAttentionSpec& spec, int hidden,
                    int layer);
    void forward(Stream& s, const Batch& b, View x) const override;
    void each_linear(const LinearVisitor& visit) override;

private:
    void load_key_value_matrices(Stream& s, const Checkpoint& c);
    View queries(Stream& s, const Batch& b, ConstView x) const;
    void append(Stream& s, const Batch& b, ConstView x) const;

    LatentAttentionSpec spec_;
    int layer_;
    LinearSlot q_, q_a_, q_b_, kv_a_, o_;  // q_, or q_a_ and q_b_
    std::optional<Norm> q_norm_, kv_norm_;
    Rotation rope_;
    Tensor into_latent_;  // (heads, rank, nope_dim)
    Tensor from_latent_;  // (heads, value_dim, rank)
};

}  // namespace exl3
