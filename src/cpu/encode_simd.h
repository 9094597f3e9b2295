// What the trellis search needs beyond simd_*.h, for the pass of isa.h that includes it: 16-bit
// costs, and minimum with a tag. U16 holds costs (unsigned) or values and targets (signed).
#if EXL3_ISA_PASS == 0

struct U16 {
    static constexpr int width = 1;
    uint16_t v;
    static U16 load(const void* p) {
        U16 r;
        std::memcpy(&r.v, p, sizeof r.v);
        return r;
    }
    static U16 set(int x) { return {static_cast<uint16_t>(x)}; }
    void store(uint16_t* p) const { *p = v; }
};
/// before + (value - target)^2, every step saturating.
inline U16 extend(U16 value, U16 target, U16 before, U16 keep, U16 tag) {
    int d = static_cast<int16_t>(value.v) - static_cast<int16_t>(target.v);
    d = d > 32767 ? 32767 : d < -32768 ? -32768 : d;
    const int square = (((d * d + 0x4000) >> 15) & keep.v) | tag.v;
    const int cost = square + before.v;
    return {static_cast<uint16_t>(cost > 65535 ? 65535 : cost)};
}
inline U16 min(U16 a, U16 b) {
    return a.v < b.v ? a : b;
}
/// a - b, at least 0.
inline U16 reduce(U16 a, U16 b) {
    return {static_cast<uint16_t>(a.v > b.v ? a.v - b.v : 0)};
}
inline U16 operator&(U16 a, U16 b) {
    return {static_cast<uint16_t>(a.v & b.v)};
}
/// Bit `bit` of every lane, to bits [at, at + width) of `plane`; `at` is a multiple of the width.
inline void store_bits(U16 x, int bit, uint8_t* plane, int at) {
    const int b = (x.v >> bit) & 1;
    if (at % 8 == 0) plane[at / 8] = 0;
    plane[at / 8] = static_cast<uint8_t>(plane[at / 8] | b << (at % 8));
}
/// a0 b0 a1 b1 ...: `a` becomes the first half, `b` the second.
inline void zip(U16&, U16&) {}

/// Non-negative floats are ordered as their bits are.
inline F32 min_positive(F32 a, F32 b) {
    return a.v < b.v ? a : b;
}
/// Lane i takes first + i in place of its `bits` lowest mantissa bits.
inline F32 tag_lanes(F32 a, int bits, int first) {
    const uint32_t u = std::bit_cast<uint32_t>(a.v) >> bits << bits;
    return {std::bit_cast<float>(u | static_cast<uint32_t>(first))};
}

#elif EXL3_ISA_PASS == 1

struct U16 {
    static constexpr int width = 16;
    __m256i v;
    static U16 load(const void* p) { return {_mm256_loadu_si256(static_cast<const __m256i*>(p))}; }
    static U16 set(int x) { return {_mm256_set1_epi16(static_cast<int16_t>(x))}; }
    void store(uint16_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
};
inline U16 extend(U16 value, U16 target, U16 before, U16 keep, U16 tag) {
    const __m256i d = _mm256_subs_epi16(value.v, target.v);
    const __m256i square =
        _mm256_or_si256(_mm256_and_si256(_mm256_mulhrs_epi16(d, d), keep.v), tag.v);
    return {_mm256_adds_epu16(square, before.v)};
}
inline U16 min(U16 a, U16 b) {
    return {_mm256_min_epu16(a.v, b.v)};
}
inline U16 reduce(U16 a, U16 b) {
    return {_mm256_subs_epu16(a.v, b.v)};
}
inline U16 operator&(U16 a, U16 b) {
    return {_mm256_and_si256(a.v, b.v)};
}
inline void store_bits(U16 x, int bit, uint8_t* plane, int at) {
    const __m256i top = _mm256_sll_epi16(x.v, _mm_cvtsi32_si128(15 - bit));
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
    const auto m = static_cast<uint16_t>(_mm_movemask_epi8(bytes));
    std::memcpy(plane + at / 8, &m, sizeof m);
}
inline void zip(U16& a, U16& b) {
    const __m256i lo = _mm256_unpacklo_epi16(a.v, b.v), hi = _mm256_unpackhi_epi16(a.v, b.v);
    a.v = _mm256_permute2x128_si256(lo, hi, 0x20);
    b.v = _mm256_permute2x128_si256(lo, hi, 0x31);
}

inline F32 min_positive(F32 a, F32 b) {
    return {
        _mm256_castsi256_ps(_mm256_min_epu32(_mm256_castps_si256(a.v), _mm256_castps_si256(b.v)))};
}
inline F32 tag_lanes(F32 a, int bits, int first) {
    const __m256i keep = _mm256_set1_epi32(-(1 << bits));
    const __m256i lanes =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
    return {_mm256_castsi256_ps(
        _mm256_or_si256(_mm256_and_si256(_mm256_castps_si256(a.v), keep), lanes))};
}

#else

struct U16 {
    static constexpr int width = 32;
    __m512i v;
    static U16 load(const void* p) { return {_mm512_loadu_si512(p)}; }
    static U16 set(int x) { return {_mm512_set1_epi16(static_cast<int16_t>(x))}; }
    void store(uint16_t* p) const { _mm512_storeu_si512(p, v); }
};
inline U16 extend(U16 value, U16 target, U16 before, U16 keep, U16 tag) {
    constexpr int kAndOr = 0xEA;  // (square & keep) | tag
    const __m512i d = _mm512_subs_epi16(value.v, target.v);
    const __m512i square =
        _mm512_ternarylogic_epi32(_mm512_mulhrs_epi16(d, d), keep.v, tag.v, kAndOr);
    return {_mm512_adds_epu16(square, before.v)};
}
inline U16 min(U16 a, U16 b) {
    return {_mm512_min_epu16(a.v, b.v)};
}
inline U16 reduce(U16 a, U16 b) {
    return {_mm512_subs_epu16(a.v, b.v)};
}
inline U16 operator&(U16 a, U16 b) {
    return {_mm512_and_si512(a.v, b.v)};
}
inline void store_bits(U16 x, int bit, uint8_t* plane, int at) {
    const __mmask32 m =
        _mm512_test_epi16_mask(x.v, _mm512_set1_epi16(static_cast<int16_t>(1 << bit)));
    std::memcpy(plane + at / 8, &m, sizeof m);
}
inline void zip(U16& a, U16& b) {
    const __m512i lo = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                        8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i hi = _mm512_add_epi16(lo, _mm512_set1_epi16(16));
    const __m512i x = _mm512_permutex2var_epi16(a.v, lo, b.v);
    b.v = _mm512_permutex2var_epi16(a.v, hi, b.v);
    a.v = x;
}

inline F32 min_positive(F32 a, F32 b) {
    return {
        _mm512_castsi512_ps(_mm512_min_epu32(_mm512_castps_si512(a.v), _mm512_castps_si512(b.v)))};
}
inline F32 tag_lanes(F32 a, int bits, int first) {
    const __m512i lanes =
        _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32(first));
    return {_mm512_castsi512_ps(_mm512_or_si512(
        _mm512_and_si512(_mm512_castps_si512(a.v), _mm512_set1_epi32(-(1 << bits))), lanes))};
}

#endif
