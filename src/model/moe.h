#pragma once
#include <memory>
#include <optional>

#include "model/expert_matrices.h"

namespace exl3 {

/// Mixture of experts: x becomes the weighted sum of the experts its router chooses, plus the
/// shared expert. What a token gets does not depend on the tokens beside it.
class Moe final : public Module {
public:
    Moe(Stream& s, const Checkpoint& c, const MoeSpec& spec, int hidden);
    void forward(Stream& s, const Batch& b, View x) const override { forward(s, b, x, x); }
    /// The same with a router that reads something else (Gemma 4).
    /// @param routed_by  (tokens, hidden) f32; may be x
    void forward(Stream& s, const Batch& b, ConstView routed_by, View x) const;
    void each_linear(const LinearVisitor& visit) override;

private:
    struct Routing {
        View chosen, weight, slot;
        RowGroups groups;
    };
    Routing route(Stream& s, ConstView x) const;
    void experts(Stream& s, const Batch& b, const Routing& r, ConstView x, View y) const;
    void show_rare_experts(Stream& s, const Batch& b, const Routing& r, ConstView x) const;
    void show_expert(Stream& s, const Batch& b, int expert, ConstView h) const;
    View hidden_of(Stream& s, const RowGroups& groups, ConstView x, int64_t entries) const;

    MoeSpec spec_;
    Device& device_;
    std::unique_ptr<Linear> router_, shared_gate_;
    Tensor bias_, expert_scale_;
    ExpertMatrices gate_, up_, down_;
    LinearSlot latent_in_, latent_out_;
    std::unique_ptr<Module> shared_;
};

}  // namespace exl3
