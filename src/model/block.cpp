#include "model/block.h"

#include "model/attention.h"
#include "model/delta_net.h"
#include "model/gated_mlp.h"
#include "model/mamba2.h"
#include "model/moe.h"
#include "model/plain_mlp.h"
#include "model/short_conv.h"
#include "ops/ops.h"

namespace exl3 {
namespace {

/// The module a spec asks for. A new kind of mixer or MLP is one more overload.
struct MakeModule {
    Stream& s;
    const Checkpoint& c;
    int hidden, layer;
    std::unique_ptr<Module> operator()(std::monostate) const { return nullptr; }
    std::unique_ptr<Module> operator()(const AttentionSpec& spec) const {
        return std::make_unique<Attention>(s, c, spec, hidden, layer);
    }
    std::unique_ptr<Module> operator()(const DeltaNetSpec& spec) const {
        return std::make_unique<DeltaNet>(s, c, spec, hidden, layer);
    }
    std::unique_ptr<Module> operator()(const Mamba2Spec& spec) const {
        return std::make_unique<Mamba2>(s, c, spec, hidden, layer);
    }
    std::unique_ptr<Module> operator()(const ShortConvSpec& spec) const {
        return std::make_unique<ShortConv>(s, c, spec, hidden, layer);
    }
    std::unique_ptr<Module> operator()(const GatedMlpSpec& spec) const {
        return std::make_unique<GatedMlp>(s, c, spec, hidden);
    }
    std::unique_ptr<Module> operator()(const PlainMlpSpec& spec) const {
        return std::make_unique<PlainMlp>(s, c, spec, hidden);
    }
    std::unique_ptr<Module> operator()(const MoeSpec& spec) const {
        return std::make_unique<Moe>(s, c, spec, hidden);
    }
};

std::optional<Norm> load_norm(Stream& s, const Checkpoint& c, const std::optional<NormSpec>& spec,
                              int dim) {
    if (!spec) return std::nullopt;
    return Norm(s, c, *spec, dim);
}

}  // namespace

Block::Block(Stream& s, const Checkpoint& c, const BlockSpec& spec, int hidden, int layer)
    : mixer_(load_norm(s, c, spec.mixer_norm, hidden),
             std::visit(MakeModule{s, c, hidden, layer}, spec.mixer),
             load_norm(s, c, spec.mixer_post_norm, hidden)),
      mlp_(load_norm(s, c, spec.mlp_norm, hidden),
           std::visit(MakeModule{s, c, hidden, layer}, spec.mlp),
           load_norm(s, c, spec.mlp_post_norm, hidden)),
      parallel_(spec.parallel) {}

void Block::Half::forward(Stream& s, const Batch& b, ConstView from, View x) const {
    if (!body) return;
    const auto scope = s.workspace().scope();
    const View y = s.workspace().take(DType::f32, x.shape);
    if (norm)
        norm->forward(s, from, y);
    else
        s.copy(from, y);
    body->forward(s, b, y);
    if (post) post->forward(s, y, y);
    ops::add(s, {.x = y, .y = x});
}

void Block::forward(Stream& s, const Batch& b, View x) const {
    if (!parallel_) {
        mixer_.forward(s, b, x, x);
        mlp_.forward(s, b, x, x);
        return;
    }
    const auto scope = s.workspace().scope();
    const View y = s.workspace().take(DType::f32, x.shape);
    mixer_.norm->forward(s, x, y);
    const View z = s.workspace().take(DType::f32, x.shape);
    for (const Half* half : {&mixer_, &mlp_}) {
        EXL3_CHECK(half->body);
        s.copy(y, z);
        half->body->forward(s, b, z);
        ops::add(s, {.x = z, .y = x});
    }
}

void Block::each_linear(const LinearVisitor& visit) {
    for (Half* half : {&mixer_, &mlp_})
        if (half->body) half->body->each_linear(visit);
}

}  // namespace exl3
