// The 128-point transform on vectors. No include guard and no namespace: a kernel file includes
// this between EXL3_ISA_BEGIN and EXL3_ISA_END.

template <int half>
EXL3_INLINE void hadamard_lanes(F32* v) {
    if constexpr (half < F32::width) {
#pragma GCC unroll 16
        for (int i = 0; i < kHadamard / F32::width; ++i) v[i] = butterfly<half>(v[i]);
        hadamard_lanes<2 * half>(v);
    }
}

template <int half>
EXL3_INLINE void hadamard_vectors(F32* v) {
    constexpr int kVectors = kHadamard / F32::width;
    if constexpr (half < kVectors) {
#pragma GCC unroll 16
        for (int i = 0; i < kVectors / 2; ++i) {
            const int j = i / half * 2 * half + i % half;
            const F32 a = v[j], b = v[j + half];
            v[j] = a + b;
            v[j + half] = a - b;
        }
        hadamard_vectors<2 * half>(v);
    }
}

/// x <- sqrt(128) H x for 128 floats: the additions of exl3::hadamard128 in its order, so every
/// tier gives the same bits.
inline void hadamard128_unscaled(float* x) {
    constexpr int kVectors = kHadamard / F32::width;
    F32 v[kVectors];
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) v[i] = F32::load(x + i * F32::width);
    hadamard_lanes<1>(v);
    hadamard_vectors<1>(v);
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) v[i].store(x + i * F32::width);
}
