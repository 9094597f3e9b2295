#include "train/block.h"

#include "model/rope_table.h"

namespace exl3::train {
namespace {

std::optional<RmsNorm> load(const Checkpoint& c, const std::optional<NormSpec>& spec, int hidden) {
    if (!spec) return std::nullopt;
    return RmsNorm(c, *spec, hidden);
}

// x += after(body(before(x)))
template <typename Body, typename BodyTape>
void half_forward(Stream& s, const Sequences& q, const Body& body,
                  const std::optional<RmsNorm>& before, const std::optional<RmsNorm>& after,
                  Matrix& x, Block::HalfTape& tape, BodyTape& body_tape) {
    tape.from = x;
    tape.body = body.forward(s, q, before ? before->forward(x) : x, body_tape);
    add(after ? after->forward(tape.body) : tape.body, x);
}

template <typename Body, typename BodyTape>
void half_backward(Stream& s, const Sequences& q, const Body& body,
                   const std::optional<RmsNorm>& before, const std::optional<RmsNorm>& after,
                   const Block::HalfTape& tape, const BodyTape& body_tape, Matrix& dx,
                   GradientTap& tap) {
    const Matrix d_body = after ? after->backward(tape.body, dx) : dx;
    const Matrix d_in = body.backward(s, q, body_tape, d_body, tap);
    add(before ? before->backward(tape.from, d_in) : d_in, dx);
}

std::string why_not(const std::optional<NormSpec>& norm) {
    return norm && norm->layer_norm ? "LayerNorm" : "";
}

}  // namespace

std::string why_not(const BlockSpec& spec) {
    if (spec.parallel) return "parallel blocks";
    for (const auto* norm :
         {&spec.mixer_norm, &spec.mixer_post_norm, &spec.mlp_norm, &spec.mlp_post_norm})
        if (const std::string why = why_not(*norm); !why.empty()) return why;
    if (spec.per_layer_input || !spec.scalar.empty()) return "inputs or factors per layer";
    const auto* attention = std::get_if<AttentionSpec>(&spec.mixer);
    if (!attention) return "layers other than softmax attention";
    if (attention->interleaved_gate || !attention->gate.empty()) return "gated attention";
    if (attention->values_from_keys || attention->v_norm || attention->kv_layer >= 0)
        return "keys and values of another kind";
    if (!attention->sinks.empty()) return "attention sinks";
    for (const auto* norm : {&attention->q_norm, &attention->k_norm}) {
        if (const std::string why = why_not(*norm); !why.empty()) return why;
        if (*norm && (*norm)->span != HeadNormSpan::head) return "norms over several heads";
    }
    if (attention->rope && depends_on_length(*attention->rope)) return "RoPE by length";
    if (attention->rope && attention->rope->query_scale_beta != 0) return "query scaling";
    const auto* gated = std::get_if<GatedMlpSpec>(&spec.mlp);
    const auto* plain = std::get_if<PlainMlpSpec>(&spec.mlp);
    if (gated && gated->limit > 0) return "clamped activations";
    const Act act = gated ? gated->act : plain ? plain->act : Act::silu;
    if (act == Act::xielu || act == Act::oai) return "activations with numbers of their own";
    if (!gated && !plain) return "layers other than dense MLPs";
    return "";
}

Block::Block(const Checkpoint& c, const BlockSpec& spec, int hidden, const WeightSource& source)
    : mixer_norms_{load(c, spec.mixer_norm, hidden), load(c, spec.mixer_post_norm, hidden)},
      mlp_norms_{load(c, spec.mlp_norm, hidden), load(c, spec.mlp_post_norm, hidden)},
      attention_(c, std::get<AttentionSpec>(spec.mixer), hidden, source),
      mlp_(spec.mlp, hidden, source) {}

void Block::forward(Stream& s, const Sequences& q, Matrix& x, Tape& tape) const {
    half_forward(s, q, attention_, mixer_norms_.before, mixer_norms_.after, x, tape.mixer,
                 tape.attention);
    half_forward(s, q, mlp_, mlp_norms_.before, mlp_norms_.after, x, tape.mlp, tape.inner);
}

void Block::backward(Stream& s, const Sequences& q, const Tape& tape, Matrix& dx,
                     GradientTap& tap) const {
    half_backward(s, q, mlp_, mlp_norms_.before, mlp_norms_.after, tape.mlp, tape.inner, dx, tap);
    half_backward(s, q, attention_, mixer_norms_.before, mixer_norms_.after, tape.mixer,
                  tape.attention, dx, tap);
}

void Block::each_linear(const std::function<void(LinearWeight&)>& visit) {
    attention_.each_linear(visit);
    mlp_.each_linear(visit);
}

}  // namespace exl3::train
