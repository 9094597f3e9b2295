#include "gpu/exl3_matmul.cuh"

namespace exl3::gpu {

template <>
MatmulKernel matmul_kernel<5>(bool pairs, int tile) {
    return pick_matmul<5>(pairs, tile);
}

}  // namespace exl3::gpu
