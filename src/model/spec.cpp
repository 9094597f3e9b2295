#include "model/spec.h"

namespace exl3 {

std::vector<LinearSpec> linears_of(const AttentionSpec& a, int hidden) {
    const int q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
    const Key fused = a.fused_qkv.empty() ? Key() : a.key / a.fused_qkv;
    const auto from_input = [&](std::string_view name, int out, int row) {
        return LinearSpec{.key = a.key / name,
                          .in = hidden,
                          .out = out,
                          .fused = fused,
                          .fused_row = row,
                          .fused_rows = q + 2 * kv,
                          .tag = a.key / "input",
                          .group = a.key / "qkv",
                          .priority = 2};
    };
    return {from_input("q_proj", a.interleaved_gate ? 2 * q : q, 0), from_input("k_proj", kv, q),
            from_input("v_proj", kv, q + kv),
            LinearSpec{.key = a.key / a.out,
                       .in = q,
                       .out = hidden,
                       .tag = a.key / "o",
                       .group = a.key / "o",
                       .priority = 2}};
}

std::vector<LinearSpec> linears_of(const GatedMlpSpec& m, int hidden) {
    const Key fused = m.fused_gate_up.empty() ? Key() : m.key / m.fused_gate_up;
    const auto from_input = [&](std::string_view name, int row) {
        return LinearSpec{.key = m.key / name,
                          .in = hidden,
                          .out = m.inner,
                          .fused = fused,
                          .fused_row = row,
                          .fused_rows = 2 * m.inner,
                          .tag = m.shared_input.empty() ? m.key / "input" : m.shared_input,
                          .group = m.key / "gate_up"};
    };
    return {from_input(m.names.gate, 0), from_input(m.names.up, m.inner),
            LinearSpec{.key = m.key / m.names.down,
                       .in = m.inner,
                       .out = hidden,
                       .tag = m.key / "down",
                       .group = m.key / "down"}};
}

std::vector<LinearSpec> linears_of(const PlainMlpSpec& m, int hidden) {
    return {LinearSpec{.key = m.key / m.names.up,
                       .in = hidden,
                       .out = m.inner,
                       .tag = m.shared_input.empty() ? m.key / "input" : m.shared_input,
                       .group = m.key / "up",
                       .priority = 1},
            LinearSpec{.key = m.key / m.names.down,
                       .in = m.inner,
                       .out = hidden,
                       .tag = m.key / "down",
                       .group = m.key / "down",
                       .priority = 1}};
}

namespace {

// Where a stacked source keeps one matrix of expert e. @param row, step  of its first and next row
void stack_source(LinearSpec& l, const MoeSpec& m, int e, const Key& fused, int rows, int row,
                  int step) {
    if (fused.empty()) return;
    l.fused = fused;
    l.fused_rows = rows;
    l.fused_row = row;
    l.fused_step = step;
    l.experts = m.router.experts;
    l.expert = e;
    l.transposed = m.stack->transposed;
    l.bare = m.stack->bare;
}

// The matrices of expert e that read the layer's input: up, and before it gate if there is one.
void add_expert_inputs(std::vector<LinearSpec>& all, const MoeSpec& m, int e, int width) {
    const bool joined = m.stack && !m.stack->gate_up.empty();
    const auto add = [&](const std::string& name, bool up) {
        LinearSpec l{.key = m.experts / e / name,
                     .in = width,
                     .out = m.inner,
                     .tag = m.latent > 0 ? m.key / "latent" : m.key / "input",
                     .group = m.experts};
        if (up) l.divisor = m.up_divisor;
        if (joined)
            stack_source(l, m, e, m.stack->gate_up, 2 * m.inner,
                         !up                    ? 0
                         : m.stack->interleaved ? 1
                                                : m.inner,
                         m.stack->interleaved ? 2 : 1);
        else if (m.stack)
            stack_source(l, m, e, up ? m.stack->up : m.stack->gate, m.inner, 0, 1);
        all.push_back(std::move(l));
    };
    if (m.gated) add(m.names.gate, false);
    add(m.names.up, true);
}

}  // namespace

// Matrices with one tag follow each other: everything that reads the input, then what comes after.
std::vector<LinearSpec> linears_of(const MoeSpec& m, int hidden) {
    const int width = m.latent > 0 ? m.latent : hidden;
    std::vector<LinearSpec> all, after;
    if (const auto* gated = std::get_if<GatedMlpSpec>(&m.shared)) {
        const auto shared = linears_of(*gated, hidden);
        all.insert(all.end(), shared.begin(), shared.end() - 1);
        after.push_back(shared.back());
    } else if (const auto* plain = std::get_if<PlainMlpSpec>(&m.shared)) {
        const auto shared = linears_of(*plain, hidden);
        all.insert(all.end(), shared.begin(), shared.end() - 1);
        after.push_back(shared.back());
    }
    if (m.latent > 0) {
        all.push_back({.key = m.latent_in,
                       .in = hidden,
                       .out = m.latent,
                       .tag = m.key / "input",
                       .group = m.latent_in});
        after.push_back({.key = m.latent_out,
                         .in = m.latent,
                         .out = hidden,
                         .tag = m.key / "latent_out",
                         .group = m.latent_out});
    }
    for (int e = 0; e < m.router.experts; ++e) add_expert_inputs(all, m, e, width);
    for (int e = 0; e < m.router.experts; ++e) {
        LinearSpec l{.key = m.experts / e / m.names.down,
                     .in = m.inner,
                     .out = width,
                     .tag = m.experts / e / "down",
                     .group = m.experts};
        if (m.stack) stack_source(l, m, e, m.stack->down, width, 0, 1);
        all.push_back(std::move(l));
    }
    all.insert(all.end(), after.begin(), after.end());
    return all;
}

std::vector<LinearSpec> linears_of(const BlockSpec& block, int hidden) {
    const auto of = [&](const auto& spec) { return linears_of(spec, hidden); };
    std::vector<LinearSpec> all = std::visit(of, block.mixer);
    const std::vector<LinearSpec> mlp = std::visit(of, block.mlp);
    all.insert(all.end(), mlp.begin(), mlp.end());
    return all;
}

}  // namespace exl3
