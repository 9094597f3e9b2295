#pragma once
#include <memory>
#include <optional>

#include "model/module.h"
#include "model/norm.h"
#include "model/per_layer_input.h"

namespace exl3 {

/// One decoder layer around the f32 residual stream x:
/// x += post(mixer(norm(x))), then x += post(mlp(norm(x))); norms where the spec has them.
class Block final : public Module {
public:
    Block(Stream& s, const Checkpoint& c, const BlockSpec& spec, int hidden, int layer);
    void forward(Stream& s, const Batch& b, View x) const override;
    void each_linear(const LinearVisitor& visit) override;

private:
    /// x += post(body(norm(from))); from may be x. Without a body it does nothing.
    struct Half {
        Half(std::optional<Norm> n, std::unique_ptr<Module> b, std::optional<Norm> p)
            : norm(std::move(n)), body(std::move(b)), post(std::move(p)) {}
        void forward(Stream& s, const Batch& b, ConstView from, View x) const;
        std::optional<Norm> norm;
        std::unique_ptr<Module> body;  // null: the block has no such half
        std::optional<Norm> post;
    };
    Half mixer_, mlp_;
    bool parallel_;
    std::optional<PerLayerInput> per_layer_input_;
    float scalar_ = 1;
};

}  // namespace exl3
