#include "gpu/exl3_gemv.cuh"

namespace exl3::gpu {

template <>
GemvKernel gemv_kernel<5>(Feed feed) {
    return pick_gemv<5>(feed);
}

}  // namespace exl3::gpu
