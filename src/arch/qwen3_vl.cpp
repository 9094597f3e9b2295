#include "arch/skeleton.h"

namespace exl3::arch {

ModelSpec qwen3(const ArchInput& in);
ModelSpec qwen3_moe(const ArchInput& in);

// Qwen 3 VL: the text part is Qwen 3, dense or with experts; rotation in several dimensions is
// plain rotation where there are no images.
ModelSpec qwen3_vl(const ArchInput& in) {
    return qwen3(with_defaults(in, {{"rope_theta", 5e6}}));
}

ModelSpec qwen3_vl_moe(const ArchInput& in) {
    ModelSpec m = qwen3_moe(with_defaults(in, {{"rope_theta", 5e6}}));
    for (BlockSpec& block : m.blocks)
        if (auto* moe = std::get_if<MoeSpec>(&block.mlp)) keep_stacked(*moe);
    return m;
}

}  // namespace exl3::arch
