#include "arch/skeleton.h"

namespace exl3::arch {

// gpt-oss: sinks, biases found in the file, a window on every other layer; experts with biases and
// the clamped activation, chosen by biased logits, their sources stacked with rows of gate and up
// taking turns.
ModelSpec gpt_oss(const ArchInput& in) {
    ModelSpec m = llama_like(in);
    const HfConfig& c = in.config;
    const auto w = windows(in, static_cast<int>(m.blocks.size()), c.get<int>("sliding_window", 128),
                           [](int i) { return i % 2 == 0; });
    const int inner = size(c, "intermediate_size");
    for (size_t i = 0; i < m.blocks.size(); ++i) {
        AttentionSpec& a = attention_of(m.blocks[i]);
        a.window = w[i];
        a.sinks = a.key / "sinks";
        const Key at = m.blocks[i].key / "mlp";
        MoeSpec moe = experts(in, at, inner);
        moe.router.key = at / "router";
        moe.router.normalise = true;
        moe.act = Act::oai;
        moe.limit = c.get<float>("swiglu_limit", 7.0f);
        moe.stack = ExpertStack{.gate_up = moe.experts / "gate_up_proj",
                                .down = moe.experts / "down_proj",
                                .interleaved = true,
                                .transposed = true};
        m.blocks[i].mlp = moe;
    }
    return m;
}

}  // namespace exl3::arch
