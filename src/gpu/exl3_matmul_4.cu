#include "gpu/exl3_matmul.cuh"

namespace exl3::gpu {

template <>
MatmulKernel matmul_kernel<4>(bool pairs, int tile) {
    return pick_matmul<4>(pairs, tile);
}

}  // namespace exl3::gpu
