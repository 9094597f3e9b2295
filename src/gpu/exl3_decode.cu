// The inner matrix as numbers, bit-exact.
#include "gpu/exl3_matmul.cuh"
#include "gpu/launch.h"
#include "ops/exl3.h"
#include "trellis/codebook.h"

namespace exl3::gpu {
namespace {

constexpr int kThreads = 128, kPad = 8;

__device__ __forceinline__ void put(float* to, __half h) {
    *to = __half2float(h);
}
__device__ __forceinline__ void put(__half* to, __half h) {
    *to = h;
}

// A thread block decodes a block of 128 x 128, 64 rows at a time, through shared memory.
template <int K, bool kPairs, typename T>
__global__ __launch_bounds__(kThreads) void to_dense(const uint32_t* packed, T* y, int64_t y_stride,
                                                     int k_blocks, uint32_t multiplier,
                                                     uint32_t addend) {
    __shared__ __half tile[64][128 + kPad];
    wait_for_predecessor();
    let_successor_start();
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int64_t block = blockIdx.x;
    const uint4* unit =
        reinterpret_cast<const uint4*>(packed + (block * kUnitsPerBlock + warp) * unit_words(K));
    T* out = y + block % k_blocks * 128 * y_stride + block / k_blocks * 128;
#pragma unroll 1
    for (int h = 0; h < 2; ++h) {
        uint32_t run[2][K + 1];
        if (h == 0)
            load_runs<K>(unit, 0, lane, run);
        else
            load_runs<K>(unit, 1, lane, run);
#pragma unroll
        for (int t = 0; t < 2; ++t)
#pragma unroll
            for (int p = 0; p < 32; p += 2) {
                // Position 32 g + p of tile row q: tile_row and tile_col of trellis/tile.h.
                const int row = (lane & 3) * 16 + 2 * (p / 8) + 8 * (p / 2 % 2);
                const int col = warp * 32 + t * 16 + lane / 4 + 8 * (p / 4 % 2);
                const uint32_t two =
                    matmul::two_weights<kPairs>(run_state<K>(run[t], p) * multiplier,
                                                run_state<K>(run[t], p + 1) * multiplier, addend);
                tile[row][col] = __ushort_as_half(static_cast<unsigned short>(two));
                tile[row + 1][col] = __ushort_as_half(static_cast<unsigned short>(two >> 16));
            }
        __syncthreads();
        for (int i = static_cast<int>(threadIdx.x); i < 64 * 128; i += kThreads)
            put(out + (h * 64 + i / 128) * y_stride + i % 128, tile[i / 128][i % 128]);
        __syncthreads();
    }
}

template <int K, typename T>
void decode(GpuStream& g, const Exl3DecodeArgs& a) {
    const int64_t k_blocks = a.packed.shape[0] / 8, groups = a.packed.shape[1] / 8;
    const bool pairs = a.codebook.kind != CodebookKind::mul1;
    const uint32_t addend = a.codebook.kind == CodebookKind::three_inst ? kThreeInstAddend : 0;
    launch(g, "exl3_decode", {dim3(static_cast<unsigned>(k_blocks * groups)), dim3(kThreads)},
           pairs ? to_dense<K, true, T> : to_dense<K, false, T>, a.packed.as<uint32_t>(),
           a.y.as<T>(), a.y.row_stride, static_cast<int>(k_blocks), a.codebook.multiplier, addend);
}

template <typename T>
void decode_bits(GpuStream& g, const Exl3DecodeArgs& a) {
    switch (a.bits) {
        case 1: return decode<1, T>(g, a);
        case 2: return decode<2, T>(g, a);
        case 3: return decode<3, T>(g, a);
        case 4: return decode<4, T>(g, a);
        case 5: return decode<5, T>(g, a);
        case 6: return decode<6, T>(g, a);
        case 7: return decode<7, T>(g, a);
        case 8: return decode<8, T>(g, a);
        default: EXL3_CHECK(false);
    }
}

}  // namespace

void exl3_decode(Stream& s, const Exl3DecodeArgs& a) {
    if (a.y.dtype == DType::f16)
        decode_bits<__half>(gpu_stream(s), a);
    else
        decode_bits<float>(gpu_stream(s), a);
}

}  // namespace exl3::gpu
