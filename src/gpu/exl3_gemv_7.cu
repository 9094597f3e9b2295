#include "gpu/exl3_gemv.cuh"

namespace exl3::gpu {

template <>
GemvKernel gemv_kernel<7>(Feed feed) {
    return pick_gemv<7>(feed);
}

}  // namespace exl3::gpu
