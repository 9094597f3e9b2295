// Eight values wide: AVX2 with FMA and F16C.
namespace exl3::cpu::avx2 {

struct F32 {
    static constexpr int width = 8;
    __m256 v;
    static F32 load(const float* p) { return {_mm256_loadu_ps(p)}; }
    static F32 load(const f16* p) {
        return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
    }
    static F32 load(const bf16* p) {
        const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16))};
    }
    static F32 set(float x) { return {_mm256_set1_ps(x)}; }
    static __m256i first(int64_t n) {
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                                  _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    }
    // Masked accesses are slow here (the store is microcode on AMD), whole vectors the usual case.
    static F32 load(const float* p, int64_t n) {
        return n == width ? load(p) : F32{_mm256_maskload_ps(p, first(n))};
    }
    template <typename H>
    static F32 load(const H* p, int64_t n) {
        if (n == width) return load(p);
        H some[8] = {};
        std::memcpy(some, p, static_cast<size_t>(n) * sizeof(H));
        return load(some);
    }
    void store(float* p) const { _mm256_storeu_ps(p, v); }
    void store(f16* p) const {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                         _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    void store(float* p, int64_t n) const {
        if (n == width) return store(p);
        _mm256_maskstore_ps(p, first(n), v);
    }
    void store(f16* p, int64_t n) const {
        f16 all[8];
        store(all);
        std::memcpy(p, all, static_cast<size_t>(n) * sizeof(f16));
    }
};
inline F32 operator+(F32 a, F32 b) {
    return {_mm256_add_ps(a.v, b.v)};
}
inline F32 operator-(F32 a, F32 b) {
    return {_mm256_sub_ps(a.v, b.v)};
}
inline F32 operator*(F32 a, F32 b) {
    return {_mm256_mul_ps(a.v, b.v)};
}
inline F32 operator/(F32 a, F32 b) {
    return {_mm256_div_ps(a.v, b.v)};
}
inline F32 fma(F32 a, F32 b, F32 c) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
inline F32 max(F32 a, F32 b) {
    return {_mm256_max_ps(a.v, b.v)};
}
inline F32 min(F32 a, F32 b) {
    return {_mm256_min_ps(a.v, b.v)};
}
inline float sum(F32 a) {
    __m128 lo = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    lo = _mm_add_ps(lo, _mm_movehl_ps(lo, lo));
    return _mm_cvtss_f32(_mm_add_ss(lo, _mm_movehdup_ps(lo)));
}
inline F32 swap_pairs(F32 a) {
    return {_mm256_permute_ps(a.v, 0xB1)};
}
inline void sum4(F32 a, F32 b, F32 c, F32 d, float* out) {
    const __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a.v, b.v), _mm256_unpackhi_ps(a.v, b.v));
    const __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c.v, d.v), _mm256_unpackhi_ps(c.v, d.v));
    const __m256 abcd =
        _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1)));
}
inline F32 select_le(F32 a, F32 b, F32 x, F32 y) {
    return {_mm256_blendv_ps(y.v, x.v, _mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ))};
}
inline float max_of(F32 a) {
    __m128 lo = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    lo = _mm_max_ps(lo, _mm_movehl_ps(lo, lo));
    return _mm_cvtss_f32(_mm_max_ss(lo, _mm_movehdup_ps(lo)));
}
inline F32 round(F32 a) {
    return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline F32 scale2(F32 a, F32 n) {
    const __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
    return {_mm256_mul_ps(a.v, _mm256_castsi256_ps(_mm256_slli_epi32(e, 23)))};
}
/// Pairs (a, b) of neighbouring groups of `half` lanes become (a + b, a - b).
template <int half>
inline F32 butterfly(F32 x) {
    const __m256 high = _mm256_blend_ps(_mm256_setzero_ps(), _mm256_set1_ps(-0.0f),
                                        half == 1   ? 0xAA
                                        : half == 2 ? 0xCC
                                                    : 0xF0);
    const __m256 other = half == 1   ? _mm256_permute_ps(x.v, 0xB1)
                         : half == 2 ? _mm256_permute_ps(x.v, 0x4E)
                                     : _mm256_permute2f128_ps(x.v, x.v, 0x01);
    return {_mm256_add_ps(other, _mm256_xor_ps(x.v, high))};
}
inline F32 abs(F32 a) {
    return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)};
}

#include "cpu/register_tiles.h"
#include "cpu/simd_math.h"

}  // namespace exl3::cpu::avx2
