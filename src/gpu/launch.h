#pragma once
#include "gpu/stream.h"

namespace exl3::gpu {

/// How a kernel is started: shapes, and dynamic shared memory in bytes.
struct Launch {
    dim3 grid, block;
    size_t shared = 0;
};

/// Starts `kernel`, which calls wait_for_predecessor() before it reads what others wrote: it may
/// start while the kernel before it still runs. Throws Error{device} naming the op.
template <typename... Params, typename... Args>
void launch(GpuStream& s, const char* op, const Launch& how, void (*kernel)(Params...),
            Args... args) {
    if (how.grid.x == 0 || how.grid.y == 0 || how.grid.z == 0) return;
#if defined(__HIP_PLATFORM_AMD__)
    kernel<<<how.grid, how.block, how.shared, s.handle()>>>(static_cast<Params>(args)...);
    require(cudaGetLastError(), op);
#else
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = how.grid;
    config.blockDim = how.block;
    config.dynamicSmemBytes = how.shared;
    config.stream = s.handle();
    config.attrs = &early;
    config.numAttrs = 1;
    require(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), op);
#endif
}

/// Lets `kernel` take that much dynamic shared memory; needed above 48 KB.
template <typename... Params>
void allow_shared(void (*kernel)(Params...), size_t bytes) {
    require(
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "shared memory of a kernel");
}

constexpr unsigned blocks_for(int64_t n, int64_t each) {
    return static_cast<unsigned>((n + each - 1) / each);
}

}  // namespace exl3::gpu
