#include "arch/skeleton.h"

namespace exl3::arch {

// Solar Open: GLM-4 MoE with experts in every layer and whole heads rotated.
ModelSpec solar_open(const ArchInput& given) {
    const ArchInput in = with_defaults(given, {{"rope_theta", 1e6}});
    ModelSpec m = llama_like(in);
    if (in.config.get<bool>("use_qk_norm", false)) add_head_norms(m);
    add_sigmoid_experts(in, m, /*first_dense_default=*/0);
    return m;
}

}  // namespace exl3::arch
