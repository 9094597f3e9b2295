#pragma once
// The one file that knows whose GPU it is. Kernels are written in CUDA's names; built as HIP, the
// names below stand for HIP's.
#if defined(__HIP_PLATFORM_AMD__)
#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#define cudaDeviceProp hipDeviceProp_t
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaError_t hipError_t
#define cudaErrorMemoryAllocation hipErrorOutOfMemory
#define cudaEvent_t hipEvent_t
#define cudaEventCreate hipEventCreate
#define cudaEventDestroy hipEventDestroy
#define cudaEventElapsedTime hipEventElapsedTime
#define cudaEventRecord hipEventRecord
#define cudaEventSynchronize hipEventSynchronize
#define cudaFree hipFree
#define cudaFuncAttributes hipFuncAttributes
#define cudaFuncGetAttributes hipFuncGetAttributes
#define cudaFuncAttributeMaxDynamicSharedMemorySize hipFuncAttributeMaxDynamicSharedMemorySize
#define cudaFuncSetAttribute hipFuncSetAttribute
#define cudaGetDevice hipGetDevice
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetDeviceProperties hipGetDeviceProperties
#define cudaGetErrorString hipGetErrorString
#define cudaGetLastError hipGetLastError
#define cudaGraphDestroy hipGraphDestroy
#define cudaGraphExecDestroy hipGraphExecDestroy
#define cudaGraphExec_t hipGraphExec_t
#define cudaGraphLaunch hipGraphLaunch
#define cudaGraph_t hipGraph_t
#define cudaMalloc hipMalloc
#define cudaMemGetInfo hipMemGetInfo
#define cudaMemcpy2DAsync hipMemcpy2DAsync
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyDefault hipMemcpyDefault
#define cudaMemsetAsync hipMemsetAsync
#define cudaSetDevice hipSetDevice
#define cudaStreamBeginCapture hipStreamBeginCapture
#define cudaStreamCaptureModeRelaxed hipStreamCaptureModeRelaxed
#define cudaStreamCreateWithFlags hipStreamCreateWithFlags
#define cudaStreamDestroy hipStreamDestroy
#define cudaStreamEndCapture hipStreamEndCapture
#define cudaStreamNonBlocking hipStreamNonBlocking
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaStream_t hipStream_t
#define cudaSuccess hipSuccess
#define EXL3_GPU_NAME "hip"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define EXL3_GPU_NAME "cuda"
#endif

#include <cstdint>

namespace exl3::gpu {

/// Threads that run in step. A wavefront of 64 works as two halves of 32: every kernel here
/// exchanges values within 32 lanes only.
inline constexpr int kWarp = 32;

#if defined(__CUDACC__) || defined(__HIPCC__)

template <typename T>
__device__ __forceinline__ T shfl_xor(T v, int mask) {
#if defined(__HIP_PLATFORM_AMD__)
    return __shfl_xor(v, mask, kWarp);
#else
    return __shfl_xor_sync(0xffffffffu, v, mask, kWarp);
#endif
}
template <typename T>
__device__ __forceinline__ T shfl(T v, int lane) {
#if defined(__HIP_PLATFORM_AMD__)
    return __shfl(v, lane, kWarp);
#else
    return __shfl_sync(0xffffffffu, v, lane, kWarp);
#endif
}
/// Lanes of one warp see each other's shared memory after this.
__device__ __forceinline__ void sync_warp() {
#if defined(__HIP_PLATFORM_AMD__)
    __builtin_amdgcn_wave_barrier();
    __threadfence_block();
#else
    __syncwarp();
#endif
}

/// Every kernel calls this before it touches memory that the kernel before it in the stream
/// may write. Kernels are launched so that they may start early (launch.h); what comes before
/// this call, such as fetching weights, overlaps with the end of their predecessor.
__device__ __forceinline__ void wait_for_predecessor() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Lets the next kernel of the stream start as soon as there is room for its blocks.
__device__ __forceinline__ void let_successor_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// d += a b with a (16, 16) and b (16, 8) f16, d f32, in the fragment layout of mma.m16n8k16.
__device__ __forceinline__ void mma_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                        uint32_t b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    // The same fragments, by exchange: lane 4 g + t holds rows g and g + 8 of d, columns 2 t and
    // 2 t + 1. For devices without this matrix unit; slow.
    const int lane = threadIdx.x % kWarp, group = lane / 4, pair = lane % 4;
    const auto half_of = [](uint32_t word, int i) {
        return __half2float(__ushort_as_half(static_cast<unsigned short>(word >> (16 * i))));
    };
    for (int k = 0; k < 16; ++k) {
        const int source = k % 8 / 2, word = k / 8 * 2;
        const float low = half_of(shfl(a[0 + word], group * 4 + source), k % 2);
        const float high = half_of(shfl(a[1 + word], group * 4 + source), k % 2);
        for (int c = 0; c < 2; ++c) {
            const uint32_t w = shfl(k < 8 ? b0 : b1, (pair * 2 + c) * 4 + source);
            const float v = half_of(w, k % 2);
            d[c] += low * v;
            d[2 + c] += high * v;
        }
    }
#endif
}

/// Four 8x8 blocks of f16 from shared memory into fragments: lane 8 i + r points to row r of block
/// i; register i of lane 4 g + t gets columns 2 t and 2 t + 1 of row g of block i.
__device__ __forceinline__ void load_blocks(uint32_t (&r)[4], const void* row) {
#if defined(__CUDA_ARCH__)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
                 : "memory");
#else
    const int lane = threadIdx.x % kWarp;
    for (int i = 0; i < 4; ++i) {
        const auto at = shfl(reinterpret_cast<unsigned long long>(row), i * 8 + lane / 4);
        r[i] = reinterpret_cast<const uint32_t*>(at)[lane % 4];
    }
#endif
}
/// The same with each block transposed: register i of lane 4 g + t gets rows 2 t and 2 t + 1 of
/// column g.
__device__ __forceinline__ void load_blocks_transposed(uint32_t (&r)[4], const void* row) {
#if defined(__CUDA_ARCH__)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
                 : "memory");
#else
    const int lane = threadIdx.x % kWarp;
    for (int i = 0; i < 4; ++i) {
        const auto low = shfl(reinterpret_cast<unsigned long long>(row), i * 8 + lane % 4 * 2);
        const auto high = shfl(reinterpret_cast<unsigned long long>(row), i * 8 + lane % 4 * 2 + 1);
        r[i] = reinterpret_cast<const uint16_t*>(low)[lane / 4] |
               static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(high)[lane / 4]) << 16;
    }
#endif
}

/// Starts a copy of 16 bytes from device to shared memory, or of zeros where `real` is false.
__device__ __forceinline__ void copy16_async(void* to, const void* from, bool real) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const int bytes = real ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(bytes)
                 : "memory");
#else
    *static_cast<uint4*>(to) = real ? *static_cast<const uint4*>(from) : uint4{};
#endif
}
/// Ends a group of copies.
__device__ __forceinline__ void commit_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until at most `kNewest` of this thread's groups are under way.
template <int kNewest>
__device__ __forceinline__ void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
#endif
}
/// 2^x, to two units in the last place.
__device__ __forceinline__ float exp2_fast(float x) {
#if defined(__CUDA_ARCH__)
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}
/// Two floats as an f16 pair, the first in the low half.
__device__ __forceinline__ uint32_t pack_halves(float low, float high) {
    const __half2 h = __floats2half2_rn(low, high);
    uint32_t bits;
    memcpy(&bits, &h, sizeof(bits));
    return bits;
}

#endif  // device code

}  // namespace exl3::gpu
