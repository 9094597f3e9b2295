#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace exl3 {

// Four floats at a time in the compilers' portable vector notation: SSE2 is part of every x86-64
// machine, so this needs no dispatch, and it gives the same bits everywhere.
using F32x4 = float __attribute__((vector_size(16)));
using I32x4 = int32_t __attribute__((vector_size(16)));
using F64x2 = double __attribute__((vector_size(16)));

inline F32x4 load4(const float* p) {
    F32x4 v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline void store4(float* p, F32x4 v) {
    std::memcpy(p, &v, sizeof v);
}
inline F32x4 splat4(float x) {
    return F32x4{x, x, x, x};
}
inline F32x4 max4(F32x4 a, F32x4 b) {
    return a > b ? a : b;
}

/// A sum of floats kept in four doubles.
struct Sum4 {
    F64x2 low{}, high{};
    void add(F32x4 v) {
        low += F64x2{v[0], v[1]};
        high += F64x2{v[2], v[3]};
    }
    double total() const { return (low[0] + low[1]) + (high[0] + high[1]); }
};

/// exp(x) for x <= 0, to about one unit in the last place; 0 below -87, where floats turn
/// denormal, and for -inf.
inline F32x4 exp_negative(F32x4 x) {
    const I32x4 tiny = x < splat4(-87.0f);  // whatever the steps below make of these is discarded
    // x = n ln 2 + r with n an integer: adding 1.5 * 2^23 rounds to an integer in the low bits.
    const F32x4 rounder = splat4(12582912.0f);
    const F32x4 shifted = x * splat4(1.44269504f) + rounder;
    const F32x4 n = shifted - rounder;
    // ln 2 in two parts, the first short enough that n times it is exact.
    const F32x4 r = (x - n * splat4(0.693359375f)) + n * splat4(2.12194440e-4f);
    // Taylor to degree 7: |r| <= ln 2 / 2, so the rest is below 6e-9.
    F32x4 y = splat4(1.0f / 5040);
    for (const float coefficient : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
        y = y * r + splat4(coefficient);
    I32x4 bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const I32x4 scale_bits = (bits << 23) + 0x3f800000;
    F32x4 scale;
    std::memcpy(&scale, &scale_bits, sizeof scale);
    return tiny ? splat4(0.0f) : y * scale;
}

}  // namespace exl3
