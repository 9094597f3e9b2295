#include <fmt/format.h>

#include "arch/skeleton.h"

namespace exl3 {
namespace {

// The first spelling that the file has, else the first of all, for the error.
std::string_view spelling(const HfConfig& c, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys)
        if (c.has(key)) return key;
    return *keys.begin();
}

// True if stacked experts lie (in, out). Where the sizes of gate_up do not tell, those of down do.
bool lies_transposed(const ArchInput& in, const ExpertStack& stack, int hidden, int inner) {
    const auto up = in.shape(stack.gate_up.str()), down = in.shape(stack.down.str());
    if (up.size() == 3 && hidden != 2 * inner) return up[1] == hidden;
    if (down.size() == 3 && hidden != inner) return down[1] == inner;
    return false;
}

}  // namespace

MoeSpec experts(const ArchInput& in, const Key& at, int inner, bool normalise_default) {
    const HfConfig& c = in.config;
    MoeSpec m{.key = at, .experts = at / "experts", .inner = inner};
    const auto count =
        spelling(c, {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"});
    const auto top_k = spelling(
        c, {"num_experts_per_tok", "moe_top_k", "moe_k", "top_k_experts", "num_experts_per_token"});
    m.router.key = at / "gate";
    m.router.experts = size(c, count);
    m.router.top_k = size(c, top_k);
    if (m.router.experts > 65536)
        c.fail(count, fmt::format("found {}, needed at most 65536", m.router.experts));
    if (m.router.top_k > m.router.experts)
        c.fail(top_k, fmt::format("found {}, needed at most {} experts", m.router.top_k,
                                  m.router.experts));
    m.router.normalise = c.get<bool>("norm_topk_prob", normalise_default);
    ExpertStack stack{.gate_up = m.experts / "gate_up_proj", .down = m.experts / "down_proj"};
    if (in.has(stack.gate_up.str())) {
        stack.transposed = lies_transposed(in, stack, size(c, "hidden_size"), inner);
        m.stack = stack;
    }
    return m;
}

void keep_stacked(MoeSpec& moe) {
    if (!moe.stack)
        moe.stack =
            ExpertStack{.gate_up = moe.experts / "gate_up_proj", .down = moe.experts / "down_proj"};
}

void sigmoid_router(const ArchInput& in, MoeSpec& moe, std::vector<std::string> bias,
                    double scale_default) {
    const HfConfig& c = in.config;
    RouterSpec& r = moe.router;
    r.score = RouterScore::sigmoid;
    r.correction_bias = std::move(bias);
    r.scale = static_cast<float>(c.get<double>("routed_scaling_factor", scale_default));
    r.groups = size(c, "n_group", 1);
    r.groups_kept = size(c, "topk_group", 1);
    if (r.experts % r.groups != 0)
        c.fail("n_group",
               fmt::format("found {}, needed a divisor of {} experts", r.groups, r.experts));
    if (r.groups_kept > r.groups)
        c.fail("topk_group",
               fmt::format("found {}, needed at most n_group = {}", r.groups_kept, r.groups));
}

int shared_width(const HfConfig& c, std::string_view key, int otherwise, int inner) {
    const int count = c.get<int>(key, otherwise);
    const int64_t width = int64_t{count} * inner;
    if (count < 0 || width > kMaxSize)
        c.fail(key, fmt::format("found {}, needed 0 to {}", count, kMaxSize / inner));
    return static_cast<int>(width);
}

std::vector<bool> sparse_layers(const ArchInput& in, size_t layers, int first_dense_default) {
    const HfConfig& c = in.config;
    const auto types = c.list<std::string>("mlp_layer_types");
    const int first = c.get<int>("first_k_dense_replace", first_dense_default);
    if (!types.empty() && types.size() < layers)
        c.fail("mlp_layer_types", fmt::format("found {} entries, needed {}", types.size(), layers));
    std::vector<bool> sparse;
    for (size_t i = 0; i < layers; ++i) {
        if (!types.empty() && types[i] != "sparse" && types[i] != "dense")
            c.fail("mlp_layer_types", fmt::format("found '{}', needed sparse or dense", types[i]));
        sparse.push_back(types.empty() ? static_cast<int>(i) >= first : types[i] == "sparse");
    }
    return sparse;
}

void add_sigmoid_experts(const ArchInput& in, ModelSpec& spec, int first_dense_default,
                         bool normalise_default) {
    const HfConfig& c = in.config;
    const int inner = size(c, "moe_intermediate_size"),
              shared = shared_width(c, "n_shared_experts", 1, inner);
    const auto sparse = sparse_layers(in, spec.blocks.size(), first_dense_default);
    for (size_t i = 0; i < spec.blocks.size(); ++i) {
        if (!sparse[i]) continue;
        BlockSpec& block = spec.blocks[i];
        const Key at = block.key / "mlp";
        MoeSpec moe = experts(in, at, inner, normalise_default);
        sigmoid_router(in, moe, {at / "gate.e_score_correction_bias"});
        add_shared_expert(moe, at / "shared_experts", shared);
        block.mlp = moe;
    }
}

void add_shared_expert(MoeSpec& moe, const Key& key, int width) {
    if (width == 0) return;
    moe.shared =
        GatedMlpSpec{.key = key, .inner = width, .act = moe.act, .shared_input = moe.key / "input"};
}

}  // namespace exl3
