#define EXL3_ISA_FILE "cpu/hadamard.cpp"
#include "cpu/isa.h"

#include "ops/gemm.h"
#include "trellis/hadamard.h"

EXL3_ISA_BEGIN

#include "cpu/hadamard128.h"

void hadamard_row(float* x, int64_t blocks) {
    const F32 scale = F32::set(kHadamardScale);
    for (int64_t b = 0; b < blocks; ++b, x += kHadamard) {
        hadamard128_unscaled(x);
        for (int i = 0; i < kHadamard; i += F32::width) (F32::load(x + i) * scale).store(x + i);
    }
}

// Sums and differences of N vectors at distances 1, 2, 4, ... N / 2.
template <int N, int half = 1>
EXL3_INLINE void hadamard_butterflies(F32* v) {
    if constexpr (half < N) {
#pragma GCC unroll 16
        for (int i = 0; i < N / 2; ++i) {
            const int j = i / half * 2 * half + i % half;
            const F32 a = v[j], b = v[j + half];
            v[j] = a + b;
            v[j + half] = a - b;
        }
        hadamard_butterflies<N, 2 * half>(v);
    }
}

// Down `n` <= width columns of a block of 128 rows, through a buffer: rows may lie a power of two
// apart, where they would push each other out of the cache.
void hadamard_columns(float* x, int64_t stride, int64_t n) {
    constexpr int kNear = 16, kFar = kHadamard / kNear;
    alignas(64) float buffer[kHadamard * F32::width];
    for (int i = 0; i < kHadamard; i += kNear) {
        F32 v[kNear];
#pragma GCC unroll 16
        for (int j = 0; j < kNear; ++j) v[j] = F32::load(x + (i + j) * stride, n);
        hadamard_butterflies<kNear>(v);
#pragma GCC unroll 16
        for (int j = 0; j < kNear; ++j) v[j].store(buffer + (i + j) * F32::width);
    }
    const F32 scale = F32::set(kHadamardScale);
    for (int i = 0; i < kNear; ++i) {
        F32 v[kFar];
#pragma GCC unroll 16
        for (int j = 0; j < kFar; ++j) v[j] = F32::load(buffer + (i + j * kNear) * F32::width);
        hadamard_butterflies<kFar>(v);
#pragma GCC unroll 16
        for (int j = 0; j < kFar; ++j) (v[j] * scale).store(x + (i + j * kNear) * stride, n);
    }
}

// Columns [begin, end) of the block of rows from `row` on.
void hadamard_strip(const HadamardArgs& a, int64_t row, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += F32::width)
        hadamard_columns(a.x.row<float>(row) + i, a.x.row_stride, lesser(F32::width, end - i));
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void hadamard(Stream& s, const HadamardArgs& a) {
    const int64_t rows = a.x.shape[0], dim = a.x.shape[1];
    if (a.columns) {
        constexpr int64_t kStrip = 64;
        const auto strip = EXL3_ISA_PICK(s, hadamard_strip);
        const int64_t strips = (dim + kStrip - 1) / kStrip;
        pool_of(s).parallel_for(rows / kHadamard * strips, 2, [&](int64_t i, int64_t end) {
            for (; i < end; ++i) {
                const int64_t begin = i % strips * kStrip;
                strip(a, i / strips * kHadamard, begin, lesser(begin + kStrip, dim));
            }
        });
        return;
    }
    const auto row = EXL3_ISA_PICK(s, hadamard_row);
    const int64_t blocks = dim / kHadamard;
    pool_of(s).parallel_for(rows * blocks, 128, [&](int64_t i, int64_t end) {
        while (i < end) {
            const int64_t some = lesser(blocks - i % blocks, end - i);
            row(a.x.row<float>(i / blocks) + i % blocks * kHadamard, some);
            i += some;
        }
    });
}

}  // namespace exl3::cpu
#endif
