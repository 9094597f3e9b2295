#pragma once
// exl3_linear of many rows: weights become f16 in registers, in the layout of the matrix unit's A
// operand, and meet all rows of a tile before the next ones are decoded.
//
// A thread block owns 128 columns and a tile of rows. Warp w decodes the 32 columns of quarter w.
// In the fragments of mma.m16n8k16 thread 4 g + t holds columns g and g + 8 and the channels
// 2 t, 2 t + 1, 2 t + 8, 2 t + 9 of a step; which channels those are is free as long as both
// operands agree, so step l of a half takes positions 8 l .. 8 l + 7 of each run, the channels
// 16 t + 2 l + {0, 1, 8, 9}. Matmul order puts the channels of every sixteen accordingly:
// 2 l, 2 l + 1, 2 l + 8, 2 l + 9 for l = 0..3.
#include "gpu/exl3_matmul.h"
#include "gpu/exl3_runs.cuh"

namespace exl3::gpu {
namespace matmul {

/// 16 bytes from memory to shared memory, or zeros; complete after the group's wait.
__device__ __forceinline__ void copy16(void* to, const void* from, bool real) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(real ? 16 : 0)
                 : "memory");
#else
    *static_cast<uint4*>(to) = real ? *static_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
#endif
}
__device__ __forceinline__ void commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int kLeft>
__device__ __forceinline__ void wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

/// Two weights as f16, bit-exact, from the states' products.
template <bool kPairs>
__device__ __forceinline__ uint32_t two_weights(uint32_t first, uint32_t second, uint32_t addend) {
    __half2 r;
    if constexpr (kPairs) {
        const uint32_t a = half_pair(first + addend), b = half_pair(second + addend);
        const uint32_t low = __byte_perm(a, b, 0x5410), high = __byte_perm(a, b, 0x7632);
        r = __hadd2_rn(*reinterpret_cast<const __half2*>(&low),
                       *reinterpret_cast<const __half2*>(&high));
    } else {
        // 0x6400 + byte sum is the half 1024 + byte sum.
        const uint32_t both = __byte_perm(__dp4a(first, 0x01010101u, 0x6400u),
                                          __dp4a(second, 0x01010101u, 0x6400u), 0x5410);
        r = __hfma2(*reinterpret_cast<const __half2*>(&both),
                    __half2half2(__ushort_as_half(0x1EEE)), __half2half2(__ushort_as_half(0xC931)));
    }
    return *reinterpret_cast<const uint32_t*>(&r);
}

/// The A registers of the four steps of a half, one tile of 16 columns.
template <int K, bool kPairs>
__device__ __forceinline__ void decode(const uint32_t (&run)[K + 1], uint32_t multiplier,
                                       uint32_t addend, uint32_t (&a)[4][4]) {
#pragma unroll
    for (int l = 0; l < 4; ++l)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            // Registers: column g low channels, column g + 8 low, g high, g + 8 high.
            const int p = 8 * l + (i & 1) * 4 + (i >> 1) * 2;
            a[l][i] = two_weights<kPairs>(run_state<K>(run, p) * multiplier,
                                          run_state<K>(run, p + 1) * multiplier, addend);
        }
}

/// Transforms 128 products of a row, scales, adds the bias and stores; element 4 lane + i is v[i].
__device__ __forceinline__ void finish(const MatmulArgs& a, float (&v)[4], int group, int row,
                                       int lane) {
    hadamard128_warp(v, lane);
    constexpr float kBothHadamards = 1.0f / 128;
    const float scale = a.scale[row] * kBothHadamards;
    float* y = a.y + row * a.y_stride;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int column = group * 128 + lane * 4 + i;
        if (column >= a.out) return;
        const float bias = a.bias.data ? a.bias[column] : 0.0f;
        y[column] = fmaf(v[i] * scale, __half2float(a.svh[column]), bias);
    }
}

}  // namespace matmul

template <int K, bool kPairs, int kTile>
__global__ __launch_bounds__(kMatmulThreads,
                             2) void exl3_matmul(const __grid_constant__ MatmulArgs a) {
    using namespace matmul;  // NOLINT
    extern __shared__ __align__(128) uint8_t shared[];
    constexpr int kStages = matmul_stages(kTile), kRowBytes = 256;
    constexpr int kStageBytes = kTile * kRowBytes + K * 2048, kOutStride = 132;
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    const int first_row = static_cast<int>(blockIdx.x) * kTile;
    const int group = static_cast<int>(blockIdx.y), slice = static_cast<int>(blockIdx.z);
    const int k_begin = a.k_blocks * slice / a.slices, k_end = a.k_blocks * (slice + 1) / a.slices;
    const int64_t k = static_cast<int64_t>(a.k_blocks) * 128;
    const uint32_t* words =
        a.words + static_cast<int64_t>(group) * a.k_blocks * kUnitsPerBlock * unit_words(K);

    const auto fetch = [&](int k_block, int stage) {
        uint8_t* rows = shared + stage * kStageBytes;
#pragma unroll
        for (int i = thread; i < kTile * 16; i += kMatmulThreads) {
            const int row = i / 16, chunk = i % 16;
            const bool real = first_row + row < a.rows;
            // Neighbouring rows swap neighbouring chunks, so that a warp's reads meet all banks.
            copy16(rows + row * kRowBytes + (chunk ^ (row & 1)) * 16,
                   a.xr + (real ? first_row + row : 0) * k + k_block * 128 + chunk * 8, real);
        }
        const uint4* from = reinterpret_cast<const uint4*>(
            words + static_cast<int64_t>(k_block) * kUnitsPerBlock * unit_words(K));
        uint4* to = reinterpret_cast<uint4*>(rows + kTile * kRowBytes);
#pragma unroll
        for (int i = 0; i < K; ++i)
            copy16(to + i * kMatmulThreads + thread, from + i * kMatmulThreads + thread, true);
    };
    wait_for_predecessor();
    let_successor_start();
#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) {
        if (k_begin + s < k_end) fetch(k_begin + s, s);
        commit();
    }
    float c[2][kTile / 8][4] = {};
    for (int k_block = k_begin; k_block < k_end; ++k_block) {
        wait<kStages - 2>();
        __syncthreads();
        const int ahead = k_block + kStages - 1;
        if (ahead < k_end) fetch(ahead, (ahead - k_begin) % kStages);
        commit();
        const uint8_t* rows = shared + (k_block - k_begin) % kStages * kStageBytes;
        const uint4* unit =
            reinterpret_cast<const uint4*>(rows + kTile * kRowBytes) + warp * (unit_words(K) / 4);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            uint32_t run[2][K + 1], w[2][4][4];
            load_runs<K>(unit, h, lane, run);
            decode<K, kPairs>(run[0], a.multiplier, a.addend, w[0]);
            decode<K, kPairs>(run[1], a.multiplier, a.addend, w[1]);
            const int g = lane >> 2, t = lane & 3;
            const uint8_t* mine = rows + g * kRowBytes + h * 128;
#pragma unroll
            for (int n = 0; n < kTile / 8; ++n) {
                const uint4 low = *reinterpret_cast<const uint4*>(mine + n * 8 * kRowBytes +
                                                                  ((t * 2) ^ (g & 1)) * 16);
                const uint4 high = *reinterpret_cast<const uint4*>(mine + n * 8 * kRowBytes +
                                                                   ((t * 2 + 1) ^ (g & 1)) * 16);
                const uint32_t b[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (int l = 0; l < 4; ++l)
#pragma unroll
                    for (int tile = 0; tile < 2; ++tile)
                        mma_f16(c[tile][n], w[tile][l], b[2 * l], b[2 * l + 1]);
            }
        }
    }
    wait<0>();
    __syncthreads();
    float* out = reinterpret_cast<float*>(shared);
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                out[(n * 8 + (lane & 3) * 2 + (i & 1)) * kOutStride + warp * 32 + tile * 16 +
                    (lane >> 2) + 8 * (i >> 1)] = c[tile][n][i];
    __syncthreads();
    for (int row = warp; row < kTile && first_row + row < a.rows; row += kMatmulThreads / 32) {
        const float4 p = *reinterpret_cast<const float4*>(out + row * kOutStride + lane * 4);
        float v[4] = {p.x, p.y, p.z, p.w};
        if (a.slices == 1)
            finish(a, v, group, first_row + row, lane);
        else
            *reinterpret_cast<float4*>(
                a.products +
                ((static_cast<int64_t>(slice) * a.rows + first_row + row) * a.groups + group) *
                    128 +
                lane * 4) = p;
    }
}

template <int K>
MatmulKernel pick_matmul(bool pairs, int tile) {
    if (pairs)
        return tile == 32   ? exl3_matmul<K, true, 32>
               : tile == 64 ? exl3_matmul<K, true, 64>
                            : exl3_matmul<K, true, 128>;
    return tile == 32   ? exl3_matmul<K, false, 32>
           : tile == 64 ? exl3_matmul<K, false, 64>
                        : exl3_matmul<K, false, 128>;
}

}  // namespace exl3::gpu
