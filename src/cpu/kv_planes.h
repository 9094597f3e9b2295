// Groups of a quantized cache (ops/kv_group.h) on vectors. No include guard and no namespace: a
// kernel file includes this between EXL3_ISA_BEGIN and EXL3_ISA_END.

template <int half>
EXL3_INLINE void kv_butterflies(F32 (&v)[kKvGroup / F32::width]) {
    constexpr int kVectors = kKvGroup / F32::width;
    if constexpr (half < F32::width) {
#pragma GCC unroll 32
        for (int i = 0; i < kVectors; ++i) v[i] = butterfly<half>(v[i]);
        kv_butterflies<2 * half>(v);
    } else if constexpr (half < kKvGroup) {
        constexpr int apart = half / F32::width;
#pragma GCC unroll 16
        for (int i = 0; i < kVectors / 2; ++i) {
            const int j = i / apart * 2 * apart + i % apart;
            const F32 a = v[j], b = v[j + apart];
            v[j] = a + b;
            v[j + apart] = a - b;
        }
        kv_butterflies<2 * half>(v);
    }
}

/// kv_rotate on each group of x, with its bits.
inline void kv_rotate_groups(float* x, int64_t dim) {
    for (; dim > 0; dim -= kKvGroup, x += kKvGroup) {
        F32 v[kKvGroup / F32::width];
#pragma GCC unroll 32
        for (int i = 0; i < kKvGroup / F32::width; ++i) v[i] = F32::load(x + i * F32::width);
        kv_butterflies<1>(v);
#pragma GCC unroll 32
        for (int i = 0; i < kKvGroup / F32::width; ++i)
            (v[i] * F32::set(kKvRotation)).store(x + i * F32::width);
    }
}

#if EXL3_ISA_PASS == 0
template <int bits>
inline void kv_expand_group(const uint32_t* words, f16 scale, f16* y) {
    kv_decode_rotated(words, scale, bits, y);
}
#else
// Shifts the fields of a plane of `width` bits for codes [8 i, 8 i + 8) below the codes so far.
template <int width>
EXL3_INLINE __m256i kv_add_plane(__m256i codes, const uint32_t* plane, int i) {
    __m256i field;
    if constexpr (width == 8) {
        field =
            _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(plane + 2 * i)));
    } else {
        constexpr int per_word = 32 / width;  // 8, 16 or 32 fields
        const int at = 8 * i % per_word * width;
        const __m256i shift = _mm256_add_epi32(
            _mm256_set1_epi32(at), _mm256_setr_epi32(0, width, 2 * width, 3 * width, 4 * width,
                                                     5 * width, 6 * width, 7 * width));
        const __m256i word = _mm256_set1_epi32(static_cast<int>(plane[8 * i / per_word]));
        field =
            _mm256_and_si256(_mm256_srlv_epi32(word, shift), _mm256_set1_epi32((1 << width) - 1));
    }
    return _mm256_or_si256(_mm256_slli_epi32(codes, width), field);
}

/// kv_decode_rotated: the product is exact in f32, so both round once.
template <int bits>
EXL3_INLINE void kv_expand_group(const uint32_t* words, f16 scale, f16* y) {
    constexpr float m = static_cast<float>(1 << (bits - 1));
    const __m256 step = _mm256_set1_ps(_cvtsh_ss(scale.bits) * (1 / m));
#pragma GCC unroll 4
    for (int i = 0; i < kKvGroup / 8; ++i) {
        __m256i codes = _mm256_setzero_si256();
        const uint32_t* plane = words;
        if constexpr ((bits & 8) != 0) codes = kv_add_plane<8>(codes, plane, i), plane += 8;
        if constexpr ((bits & 4) != 0) codes = kv_add_plane<4>(codes, plane, i), plane += 4;
        if constexpr ((bits & 2) != 0) codes = kv_add_plane<2>(codes, plane, i), plane += 2;
        if constexpr ((bits & 1) != 0) codes = kv_add_plane<1>(codes, plane, i);
        const __m256 value =
            _mm256_mul_ps(_mm256_add_ps(_mm256_cvtepi32_ps(codes), _mm256_set1_ps(0.5f - m)), step);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(y + 8 * i),
                         _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
}
#endif

template <int bits>
inline void kv_expand_row(const uint32_t* words, const f16* scales, int64_t groups, f16* y) {
    for (int64_t g = 0; g < groups; ++g)
        kv_expand_group<bits>(words + g * bits, scales[g], y + g * kKvGroup);
}

/// One row of a quantized plane, rotated, as f16. @param row  counted over heads
inline void kv_expand(const View& plane, const View& scale, int64_t row, int64_t dim, f16* y) {
    const int64_t groups = dim / kKvGroup, stride = plane.shape[3];
    const uint32_t* words = plane.as<uint32_t>() + row * stride;
    const f16* scales = scale.as<f16>() + row * groups;
    switch (stride / groups) {
        case 2: return kv_expand_row<2>(words, scales, groups, y);
        case 3: return kv_expand_row<3>(words, scales, groups, y);
        case 4: return kv_expand_row<4>(words, scales, groups, y);
        case 5: return kv_expand_row<5>(words, scales, groups, y);
        case 6: return kv_expand_row<6>(words, scales, groups, y);
        case 7: return kv_expand_row<7>(words, scales, groups, y);
        default: return kv_expand_row<8>(words, scales, groups, y);
    }
}
