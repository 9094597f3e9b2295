#pragma once

namespace exl3 {

/// The only transform size of the format.
inline constexpr int kHadamard = 128;
inline constexpr float kHadamardScale = 0.08838834764831845f;  // 1 / sqrt(128)

/// x <- H x in place for `kHadamard` values `stride` apart, H the Sylvester matrix in natural
/// order times 1/sqrt(128). H is symmetric and its own inverse. T is float or double.
template <typename T>
void hadamard128(T* x, long stride = 1) {
    for (int half = 1; half < kHadamard; half *= 2)
        for (int i = 0; i < kHadamard; i += 2 * half)
            for (int j = i; j < i + half; ++j) {
                const T a = x[j * stride], b = x[(j + half) * stride];
                x[j * stride] = a + b;
                x[(j + half) * stride] = a - b;
            }
    for (int i = 0; i < kHadamard; ++i) x[i * stride] *= static_cast<T>(0.08838834764831845);
}

}  // namespace exl3
