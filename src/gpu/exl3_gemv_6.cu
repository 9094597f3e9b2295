#include "gpu/exl3_gemv.cuh"

namespace exl3::gpu {

template <>
GemvKernel gemv_kernel<6>(Feed feed) {
    return pick_gemv<6>(feed);
}

}  // namespace exl3::gpu
