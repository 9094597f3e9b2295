// Runs in AVX-512 registers, one per 32-bit lane. No include guard and no namespace: the kernel
// files include this inside the tier's namespace and target region, once plain (F, BW) and once
// with VNNI and VBMI2.

using Runs = __m512i;

EXL3_INLINE Runs splat_runs(uint32_t x) {
    return _mm512_set1_epi32(static_cast<int>(x));
}

/// w[0]: the word before each run, w[1..K]: its words.
template <int K>
EXL3_INLINE void load_runs(const uint32_t* words, Runs* w) {
#pragma GCC unroll 8
    for (int i = 0; i < K; ++i) {
        w[i + 1] = _mm512_loadu_si512(words + i * kRunLanes);
        _mm_prefetch(reinterpret_cast<const char*>(words + i * kRunLanes) + kRunPrefetch,
                     _MM_HINT_T0);
    }
    // A tile is a ring: run 7 comes before run 0.
    w[0] = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6, 15, 8, 9, 10, 11, 12, 13, 14), w[K]);
}

/// State T of each run: the 16 bits that end before bit (T + 1) K.
template <int K, int T>
EXL3_INLINE Runs run_state(const Runs* w) {
    constexpr int kEnd = (T + 1) * K, kWord = (kEnd + 31) / 32, kShift = kWord * 32 - kEnd;
    const Runs mask = _mm512_set1_epi32(0xffff);
    if constexpr (kShift == 0) return _mm512_and_si512(w[kWord], mask);
    if constexpr (kShift == 16) return _mm512_srli_epi32(w[kWord], 16);
    if constexpr (kShift < 16)
        return _mm512_and_si512(_mm512_srli_epi32(w[kWord], kShift), mask);
    else {
#if EXL3_ISA_PASS >= 3
        return _mm512_and_si512(_mm512_shrdi_epi32(w[kWord], w[kWord - 1], kShift), mask);
#else
        return _mm512_ternarylogic_epi32(_mm512_srli_epi32(w[kWord], kShift),
                                         _mm512_slli_epi32(w[kWord - 1], 32 - kShift), mask,
                                         0xA8);  // (a | b) & c
#endif
    }
}

template <int K, CodebookKind C, int T>
EXL3_INLINE Runs run_hash(const Runs* w, Runs multiplier) {
    const Runs h = _mm512_mullo_epi32(run_state<K, T>(w), multiplier);
    if constexpr (C == CodebookKind::three_inst)
        return _mm512_add_epi32(h, _mm512_set1_epi32(static_cast<int>(kThreeInstAddend)));
    return h;
}

/// acc + a . b over the two 16-bit halves of each lane.
EXL3_INLINE Runs add_dot16(Runs acc, Runs a, Runs b) {
#if EXL3_ISA_PASS >= 3
    return _mm512_dpwssd_epi32(acc, a, b);
#else
    return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b));
#endif
}

/// acc + the sum of the four bytes of each lane.
EXL3_INLINE Runs add_bytes(Runs acc, Runs bytes) {
#if EXL3_ISA_PASS >= 3
    return _mm512_dpbusd_epi32(acc, bytes, _mm512_set1_epi8(1));
#else
    return add_dot16(acc, _mm512_maddubs_epi16(bytes, _mm512_set1_epi8(1)), _mm512_set1_epi16(1));
#endif
}

/// The codebook values of hashes before their rounding to f16, exact.
template <CodebookKind C>
EXL3_INLINE F32 run_values(Runs hash) {
    if constexpr (C == CodebookKind::mul1) {
        const Runs sum = add_bytes(_mm512_set1_epi32(1024), hash);
        return fma({_mm512_cvtepi32_ps(sum)}, F32::set(kMul1Scale), F32::set(kMul1Bias));
    } else {
        // Shifted by three, a half is an f32 but for its exponent's upper bits, which are constant.
        const Runs mask = _mm512_set1_epi32(static_cast<int>(0x81ffe000));
        const Runs flip = _mm512_set1_epi32(0x3f6c0000);
        const Runs high = _mm512_ternarylogic_epi32(_mm512_srai_epi32(hash, 3), mask, flip, 0x6A);
        const Runs low = _mm512_ternarylogic_epi32(
            _mm512_srai_epi32(_mm512_slli_epi32(hash, 16), 3), mask, flip, 0x6A);
        return {_mm512_add_ps(_mm512_castsi512_ps(low), _mm512_castsi512_ps(high))};
    }
}
