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
    return {from_input("q_proj", q, 0), from_input("k_proj", kv, q),
            from_input("v_proj", kv, q + kv),
            LinearSpec{.key = a.key / "o_proj",
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
                          .tag = m.key / "input",
                          .group = m.key / "gate_up"};
    };
    return {from_input("gate_proj", 0), from_input("up_proj", m.inner),
            LinearSpec{.key = m.key / "down_proj",
                       .in = m.inner,
                       .out = hidden,
                       .tag = m.key / "down",
                       .group = m.key / "down"}};
}

std::vector<LinearSpec> linears_of(const PlainMlpSpec& m, int hidden) {
    return {LinearSpec{.key = m.key / "up_proj",
                       .in = hidden,
                       .out = m.inner,
                       .tag = m.key / "input",
                       .group = m.key / "up",
                       .priority = 1},
            LinearSpec{.key = m.key / "down_proj",
                       .in = m.inner,
                       .out = hidden,
                       .tag = m.key / "down",
                       .group = m.key / "down",
                       .priority = 1}};
}

std::vector<LinearSpec> linears_of(const BlockSpec& block, int hidden) {
    const auto of = [&](const auto& spec) { return linears_of(spec, hidden); };
    std::vector<LinearSpec> all = std::visit(of, block.mixer);
    const std::vector<LinearSpec> mlp = std::visit(of, block.mlp);
    all.insert(all.end(), mlp.begin(), mlp.end());
    return all;
}

}  // namespace exl3
