// Runs in AVX2 registers: the eight runs of one tile. No include guard and no namespace: the kernel
// files include this inside the tier's namespace and target region.

using Runs = __m256i;
inline constexpr int kTileLanes = 8;

EXL3_INLINE Runs splat_runs(uint32_t x) {
    return _mm256_set1_epi32(static_cast<int>(x));
}

/// w[0]: the word before each run, w[1..K]: its words. `words` points at the tile's first lane.
template <int K>
EXL3_INLINE void load_runs(const uint32_t* words, Runs* w) {
#pragma GCC unroll 8
    for (int i = 0; i < K; ++i)
        w[i + 1] = _mm256_loadu_si256(reinterpret_cast<const Runs*>(words + i * kRunLanes));
    // A tile is a ring: run 7 comes before run 0.
    w[0] = _mm256_permutevar8x32_epi32(w[K], _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
}

/// State T of each run: the 16 bits that end before bit (T + 1) K.
template <int K, int T>
EXL3_INLINE Runs run_state(const Runs* w) {
    constexpr int kEnd = (T + 1) * K, kWord = (kEnd + 31) / 32, kShift = kWord * 32 - kEnd;
    const Runs mask = _mm256_set1_epi32(0xffff);
    if constexpr (kShift == 0) return _mm256_and_si256(w[kWord], mask);
    if constexpr (kShift == 16) return _mm256_srli_epi32(w[kWord], 16);
    if constexpr (kShift < 16)
        return _mm256_and_si256(_mm256_srli_epi32(w[kWord], kShift), mask);
    else
        return _mm256_and_si256(_mm256_or_si256(_mm256_srli_epi32(w[kWord], kShift),
                                                _mm256_slli_epi32(w[kWord - 1], 32 - kShift)),
                                mask);
}

template <int K, CodebookKind C, int T>
EXL3_INLINE Runs run_hash(const Runs* w, Runs multiplier) {
    const Runs h = _mm256_mullo_epi32(run_state<K, T>(w), multiplier);
    if constexpr (C == CodebookKind::three_inst)
        return _mm256_add_epi32(h, _mm256_set1_epi32(static_cast<int>(kThreeInstAddend)));
    return h;
}

/// acc + a . b over the two 16-bit halves of each lane.
EXL3_INLINE Runs add_dot16(Runs acc, Runs a, Runs b) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
}

/// acc + the sum of the four bytes of each lane.
EXL3_INLINE Runs add_bytes(Runs acc, Runs bytes) {
    return add_dot16(acc, _mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1)), _mm256_set1_epi16(1));
}

/// The codebook values of hashes before their rounding to f16, exact.
template <CodebookKind C>
EXL3_INLINE F32 run_values(Runs hash) {
    if constexpr (C == CodebookKind::mul1) {
        const Runs sum = add_bytes(_mm256_set1_epi32(1024), hash);
        return fma({_mm256_cvtepi32_ps(sum)}, F32::set(kMul1Scale), F32::set(kMul1Bias));
    } else {
        // Shifted by three, a half is an f32 but for its exponent's upper bits, which are constant.
        const Runs mask = _mm256_set1_epi32(static_cast<int>(0x81ffe000));
        const Runs flip = _mm256_set1_epi32(0x3f6c0000);
        const Runs high =
            _mm256_xor_si256(_mm256_and_si256(_mm256_srai_epi32(hash, 3), mask), flip);
        const Runs low = _mm256_xor_si256(
            _mm256_and_si256(_mm256_srai_epi32(_mm256_slli_epi32(hash, 16), 3), mask), flip);
        return {_mm256_add_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high))};
    }
}
