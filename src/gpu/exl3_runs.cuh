#pragma once
// Run order: the layout that exl3_repack makes and every exl3 kernel of the GPU reads.
//
// The 32 positions 32 g .. 32 g + 31 of a tile, a run, are K whole 32-bit words and hold all 16
// rows of the columns g and g + 8. A thread that owns a run extracts every state with shifts known
// at compile time, and needs one foreign word (the last one of the run before).
//
// A unit is 128 rows by 32 columns: 2 halves of 64 rows by 2 tiles of 16 columns. Lane 4 g + q owns
// run g of tile row q of each half and tile: 4 K words, word i = (half * 2 + tile) * K + w. They
// stand as K planes of 32 x 16 bytes, so that a warp reads whole lines for every K:
//   packed[unit * 128 K + (i / 4) * 128 + lane * 4 + i % 4].
// Units follow each other as [n / 128][k / 128][4]: a group of 128 columns is one contiguous stream
// over all of k.
//
// The states of a run are the A fragments of mma.m16n8k16 / m16n8k32 with output columns as rows:
// step q of a half takes the positions base, base + 4, base + 1, base + 5 with
// base = 8 (q / 2) + 2 (q % 2), that is columns (g, g + 8) of the input channels
// 16 (lane % 4) + 2 (q / 2) + 8 (q % 2) + {0, 1} of that half.
#include <cstdint>

#include "gpu/exl3_gemv.h"
#include "gpu/vendor.h"

namespace exl3::gpu {

/// State of position t of a run: w[0] is the word before the run, w[1 .. K] the run itself.
/// t has to be a constant after unrolling.
template <int K>
__device__ __forceinline__ uint32_t run_state(const uint32_t* w, int t) {
    const int end = (t + 1) * K, i = (end - 1) / 32, shift = (i + 1) * 32 - end;
    const uint32_t low = w[i + 1], high = w[i];
    if (shift == 0) return __byte_perm(low, 0, 0x4410);
    if (shift == 8) return __byte_perm(low, 0, 0x4421);
    if (shift == 16) return low >> 16;
    if constexpr ((K & (K - 1)) == 0) {
        // Shifts repeat mod 8: one shifted copy serves three states, each a byte permutation.
        const int copy = shift & 7, byte = shift >> 3;
        if (byte < 3) {
            const uint32_t v = copy ? __funnelshift_r(low, high, copy) : low;
            return __byte_perm(v, 0, byte == 0 ? 0x4410 : byte == 1 ? 0x4421 : 0x4432);
        }
    }
    if (shift < 16) return (low >> shift) & 0xffff;
    return __funnelshift_r(low, high, shift) & 0xffff;
}

/// The runs of one half of a unit with the word before each.
template <int K>
__device__ __forceinline__ void load_runs(const uint4* unit, int half, int lane,
                                          uint32_t (&run)[2][K + 1]) {
    const int first = half * 2 * K;
#pragma unroll
    for (int p = first / 4; p * 4 < first + 2 * K; ++p) {
        const uint4 v = unit[p * 32 + lane];
        const uint32_t word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int i = p * 4 + j - first;
            if (i >= 0 && i < 2 * K) run[i / K][i % K + 1] = word[j];
        }
    }
#pragma unroll
    for (int t = 0; t < 2; ++t) run[t][0] = shfl(run[t][K], (lane + 28) & 31);
}

/// The two halves whose sum is the weight, from a hash (mcg, 3inst). One instruction, which the
/// compiler does not find: constants are two immediates unless they come from registers.
__device__ __forceinline__ uint32_t half_pair(uint32_t h) {
#if defined(__CUDA_ARCH__)
    uint32_t r;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(r) : "r"(h), "r"(0x8FFF8FFFu), "r"(0x3B603B60u));
    return r;
#else
    return (h & 0x8FFF8FFFu) ^ 0x3B603B60u;
#endif
}

/// The four A registers of step q of a half, as products with the multiplier (mul1) or as pairs of
/// halves whose sum is the weight (mcg, 3inst).
template <int K, bool kPairs>
__device__ __forceinline__ void run_fragment(const uint32_t* w, int q, uint32_t multiplier,
                                             uint32_t addend, uint32_t (&a)[4]) {
    const int base = (q >> 1) * 8 + (q & 1) * 2;
    const int at[4] = {base, base + 4, base + 1, base + 5};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        a[i] = run_state<K>(w, at[i]) * multiplier;
        if constexpr (kPairs) a[i] = half_pair(a[i] + addend);
    }
}

#if !defined(__HIP_PLATFORM_AMD__)
/// c += a b with a (16 x 32) u8, b (32 x 8) s8.
__device__ __forceinline__ void mma(int (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// c += a b with a (16 x 16) f16, b (16 x 8) f16.
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#endif

/// The unscaled 128-point Hadamard transform over a warp; element 4 lane + i is v[i].
__device__ __forceinline__ void hadamard128_warp(float (&v)[4], int lane) {
    const float a = v[0] + v[1], b = v[0] - v[1], c = v[2] + v[3], d = v[2] - v[3];
    v[0] = a + c;
    v[1] = b + d;
    v[2] = a - c;
    v[3] = b - d;
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) {
        const float sign = lane & mask ? -1.0f : 1.0f;
#pragma unroll
        for (float& x : v) x = fmaf(sign, x, shfl_xor(x, mask));
    }
}

}  // namespace exl3::gpu
