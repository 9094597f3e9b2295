#include "gpu/exl3_gemv.cuh"

namespace exl3::gpu {

template <>
GemvKernel gemv_kernel<2>(Feed feed) {
    return pick_gemv<2>(feed);
}

}  // namespace exl3::gpu
