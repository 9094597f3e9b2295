#include "gpu/exl3_gemv.cuh"

namespace exl3::gpu {

template <>
GemvKernel gemv_kernel<4>(Feed feed) {
    return pick_gemv<4>(feed);
}

}  // namespace exl3::gpu
