#include "gpu/exl3_gemv.cuh"

namespace exl3::gpu {

template <>
GemvKernel gemv_kernel<1>(Feed feed) {
    return pick_gemv<1>(feed);
}

}  // namespace exl3::gpu
