#include "gpu/exl3_matmul.cuh"

namespace exl3::gpu {

template <>
MatmulKernel matmul_kernel<1>(bool pairs, int tile) {
    return pick_matmul<1>(pairs, tile);
}

}  // namespace exl3::gpu
