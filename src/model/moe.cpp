#include "model/moe.h"

#include <algorithm>

#include "model/gated_mlp.h"
#include "model/plain_mlp.h"
#include "ops/ops.h"

namespace exl3 {
namespace {

std::unique_ptr<Module> make_shared_expert(Stream& s, const Checkpoint& c, const MoeSpec& spec,
                                           int hidden) {
    if (const auto* gated = std::get_if<GatedMlpSpec>(&spec.shared))
        return std::make_unique<GatedMlp>(s, c, *gated, hidden);
    if (const auto* plain = std::get_if<PlainMlpSpec>(&spec.shared))
        return std::make_unique<PlainMlp>(s, c, *plain, hidden);
    return nullptr;
}

}  // namespace

Moe::Moe(Stream& s, const Checkpoint& c, const MoeSpec& spec, int hidden)
    : spec_(spec),
      device_(s.device()),
      router_(
          load_linear(s, c, {.key = spec.router.key, .in = hidden, .out = spec.router.experts})),
      shared_(make_shared_expert(s, c, spec, hidden)) {
    const RouterSpec& r = spec.router;
    if (!spec.shared_gate.empty())
        shared_gate_ = load_linear(s, c, {.key = spec.shared_gate, .in = hidden, .out = 1});
    for (const std::string& name : r.correction_bias)
        if (!bias_ && c.has(name)) bias_ = load_f32_vector(s, c, name, r.experts);
    if (!r.expert_scale.empty()) expert_scale_ = load_f32_vector(s, c, r.expert_scale, r.experts);

    std::vector<LinearSpec> gate, up, down;
    for (const LinearSpec& l : linears_of(spec, hidden)) {
        const auto ends = [&](const std::string& name) {
            return l.key.str().starts_with(spec.experts.str() + ".") &&
                   l.key.str().ends_with("." + name);
        };
        if (l.key.str() == spec.latent_in.str())
            latent_in_ = LinearSlot(s, c, l);
        else if (l.key.str() == spec.latent_out.str())
            latent_out_ = LinearSlot(s, c, l);
        else if (l.group == spec.experts.str())
            (ends(spec.names.down) ? down : ends(spec.names.up) ? up : gate).push_back(l);
    }
    if (spec.gated) gate_ = ExpertMatrices(s, c, gate);
    up_ = ExpertMatrices(s, c, up);
    down_ = ExpertMatrices(s, c, down);
}

Moe::Routing Moe::route(Stream& s, ConstView x) const {
    Workspace& w = s.workspace();
    const RouterSpec& r = spec_.router;
    const int64_t tokens = x.shape[0], top_k = r.top_k;
    Routing routing{.chosen = w.take(DType::i32, {tokens, top_k}),
                    .weight = w.take(DType::f32, {tokens, top_k}),
                    .slot = w.take(DType::i32, {tokens, top_k})};
    const View start = w.take(DType::i32, {r.experts + 1}),
               source = w.take(DType::i32, {tokens * top_k});
    const View logits = w.take(DType::f32, {tokens, r.experts});
    router_->forward(s, x, logits);
    ops::route(s, {.logits = logits,
                   .bias = bias_.view,
                   .expert_scale = expert_scale_.view,
                   .chosen = routing.chosen,
                   .weight = routing.weight,
                   .score = r.score,
                   .normalise = r.normalise,
                   .scale = r.scale,
                   .groups = r.groups,
                   .groups_kept = r.groups_kept});
    ops::group_rows(
        s, {.chosen = routing.chosen, .start = start, .source = source, .slot = routing.slot});
    routing.groups = {start, source};
    return routing;
}

// What the down matrices of the experts read, an entry for each (token, expert) pair.
View Moe::hidden_of(Stream& s, const RowGroups& groups, ConstView x, int64_t entries) const {
    Workspace& w = s.workspace();
    const View up = w.take(DType::f32, {entries, spec_.inner});
    up_.forward(s, groups, x, up);
    View gate = up;
    if (spec_.gated) {
        gate = w.take(DType::f32, {entries, spec_.inner});
        gate_.forward(s, groups, x, gate);
    }
    ops::gated_act(s, {.gate = gate,
                       .up = spec_.gated ? ConstView(up) : ConstView(),
                       .y = gate,
                       .act = spec_.act,
                       .limit = spec_.limit,
                       .clamp = spec_.clamp});
    return gate;
}

void Moe::experts(Stream& s, const Batch& b, const Routing& r, ConstView x, View y) const {
    const auto scope = s.workspace().scope();
    const int64_t entries = r.chosen.shape.numel();
    const View h = hidden_of(s, r.groups, x, entries);
    if (b.tap) {
        s.synchronize();
        std::vector<int32_t> start(static_cast<size_t>(r.groups.start.shape[0]));
        s.copy(r.groups.start, dense(start.data(), DType::i32, r.groups.start.shape));
        s.synchronize();
        for (int e = 0; e < spec_.router.experts; ++e) {
            const auto i = static_cast<size_t>(e);
            if (start[i + 1] > start[i])
                show_expert(s, b, e, slice_rows(ConstView(h), start[i], start[i + 1] - start[i]));
        }
        show_rare_experts(s, b, r, x);
    }
    const View out = s.workspace().take(DType::f32, {entries, down_.out()});
    down_.forward(s, {.start = r.groups.start}, h, out);
    ops::combine_rows(s, {.x = out, .slot = r.slot, .weight = r.weight, .y = y});
}

void Moe::show_expert(Stream& s, const Batch& b, int expert, ConstView h) const {
    b.tap->see(s, (spec_.experts / expert / "down").str(), h);
}

// An expert that a calibration text hardly reaches would be rounded by a handful of tokens. It is
// shown tokens routed elsewhere, evenly taken, up to half of what an expert sees on average.
void Moe::show_rare_experts(Stream& s, const Batch& b, const Routing& r, ConstView x) const {
    const int64_t tokens = x.shape[0], experts = spec_.router.experts;
    const int64_t least = std::max<int64_t>(1, tokens * spec_.router.top_k / experts / 2);
    std::vector<int32_t> start(static_cast<size_t>(experts) + 1), source, more_start = {0};
    s.copy(r.groups.start, dense(start.data(), DType::i32, r.groups.start.shape));
    s.synchronize();
    for (int64_t e = 0; e < experts; ++e) {
        const auto i = static_cast<size_t>(e);
        const int64_t missing = least - (start[i + 1] - start[i]);
        for (int64_t n = 0; n < missing; ++n)
            source.push_back(static_cast<int32_t>((2 * n + 1) * tokens / (2 * missing)));
        more_start.push_back(static_cast<int32_t>(source.size()));
    }
    if (source.empty()) return;
    const auto scope = s.workspace().scope();
    const auto upload = [&](const std::vector<int32_t>& v) {
        const Shape shape = {static_cast<int64_t>(v.size())};
        const View view = s.workspace().take(DType::i32, shape);
        s.copy(dense(v.data(), DType::i32, shape), view);
        return view;
    };
    const RowGroups groups{upload(more_start), upload(source)};
    const View h = hidden_of(s, groups, x, static_cast<int64_t>(source.size()));
    s.synchronize();
    for (int e = 0; e < experts; ++e) {
        const auto i = static_cast<size_t>(e);
        if (more_start[i + 1] > more_start[i])
            show_expert(s, b, e,
                        slice_rows(ConstView(h), more_start[i], more_start[i + 1] - more_start[i]));
    }
}

void Moe::forward(Stream& s, const Batch& b, ConstView routed_by, View x) const {
    Workspace& w = s.workspace();
    const auto scope = w.scope();
    if (b.tap) b.tap->see(s, (spec_.key / "input").str(), x);
    const Routing r = route(s, routed_by);
    const View routed = w.take(DType::f32, x.shape);
    if (spec_.latent > 0) {
        const View narrow = w.take(DType::f32, {x.shape[0], spec_.latent});
        latent_in_.linear->forward(s, x, narrow);
        if (b.tap) b.tap->see(s, (spec_.key / "latent").str(), narrow);
        const View sum = w.take(DType::f32, narrow.shape);
        experts(s, b, r, narrow, sum);
        if (b.tap) b.tap->see(s, latent_out_.spec.tag, sum);
        latent_out_.linear->forward(s, sum, routed);
    } else {
        experts(s, b, r, x, routed);
    }
    if (!shared_) {
        s.copy(routed, x);
        return;
    }
    View factor;
    if (shared_gate_) {
        factor = w.take(DType::f32, {x.shape[0], 1});
        shared_gate_->forward(s, x, factor);
    }
    shared_->forward(s, b, x);
    if (factor)
        ops::head_gate(s, {.x = reshape(x, {x.shape[0], 1, x.shape[1]}),
                           .gate = reshape(factor, {x.shape[0], 1, 1})});
    ops::add(s, {.x = routed, .y = x});
}

void Moe::each_linear(const LinearVisitor& visit) {
    if (spec_.latent > 0) visit(latent_in_);
    for (ExpertMatrices* m : {&gate_, &up_, &down_}) {
        for (LinearSlot& slot : m->slots()) visit(slot);
        m->index(device_);
    }
    if (spec_.latent > 0) visit(latent_out_);
    if (shared_) shared_->each_linear(visit);
}

}  // namespace exl3
