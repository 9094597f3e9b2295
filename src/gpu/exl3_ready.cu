#include "gpu/exl3_gemv.cuh"

namespace exl3::gpu {

GemvKernel ready_kernel(Feed feed) {
#if !defined(__HIP_PLATFORM_AMD__)
    switch (feed) {
        case Feed::byte4: return exl3_ready<Feed::byte4>;
        case Feed::byte8: return exl3_ready<Feed::byte8>;
        case Feed::half8: return exl3_ready<Feed::half8>;
        default: break;
    }
#endif
    return nullptr;
}

}  // namespace exl3::gpu
