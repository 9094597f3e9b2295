#include "gpu/exl3_gemv.cuh"

namespace exl3::gpu {

template <>
GemvKernel gemv_kernel<3>(Feed feed) {
    return pick_gemv<3>(feed);
}

}  // namespace exl3::gpu
