#include "gpu/exl3_gemv.cuh"

namespace exl3::gpu {

template <>
GemvKernel gemv_kernel<8>(Feed feed) {
    return pick_gemv<8>(feed);
}

}  // namespace exl3::gpu
