// Sixteen values wide: AVX-512 F, BW, VL, DQ; shared by the tiers that add to it.
namespace exl3::cpu::avx512simd {

struct F32 {
    static constexpr int width = 16;
    __m512 v;
    static F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
    static F32 load(const f16* p) {
        return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
    }
    static F32 load(const bf16* p) {
        const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))};
    }
    static F32 set(float x) { return {_mm512_set1_ps(x)}; }
    static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
    static F32 load(const float* p, int64_t n) { return {_mm512_maskz_loadu_ps(first(n), p)}; }
    static F32 load(const f16* p, int64_t n) {
        return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p))};
    }
    static F32 load(const bf16* p, int64_t n) {
        const __m256i h = _mm256_maskz_loadu_epi16(first(n), p);
        return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))};
    }
    void store(float* p) const { _mm512_storeu_ps(p, v); }
    void store(f16* p) const {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                            _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    void store(float* p, int64_t n) const { _mm512_mask_storeu_ps(p, first(n), v); }
    void store(f16* p, int64_t n) const {
        _mm256_mask_storeu_epi16(p, first(n),
                                 _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
};
inline F32 operator+(F32 a, F32 b) {
    return {_mm512_add_ps(a.v, b.v)};
}
inline F32 operator-(F32 a, F32 b) {
    return {_mm512_sub_ps(a.v, b.v)};
}
inline F32 operator*(F32 a, F32 b) {
    return {_mm512_mul_ps(a.v, b.v)};
}
inline F32 operator/(F32 a, F32 b) {
    return {_mm512_div_ps(a.v, b.v)};
}
inline F32 fma(F32 a, F32 b, F32 c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline F32 max(F32 a, F32 b) {
    return {_mm512_max_ps(a.v, b.v)};
}
inline F32 min(F32 a, F32 b) {
    return {_mm512_min_ps(a.v, b.v)};
}
inline float sum(F32 a) {
    return _mm512_reduce_add_ps(a.v);
}
inline F32 swap_pairs(F32 a) {
    return {_mm512_permute_ps(a.v, 0xB1)};
}
inline void sum4(F32 a, F32 b, F32 c, F32 d, float* out) {
    const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a.v, b.v), _mm512_unpackhi_ps(a.v, b.v));
    const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c.v, d.v), _mm512_unpackhi_ps(c.v, d.v));
    const __m512 abcd =
        _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    const __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256(abcd), _mm512_extractf32x8_ps(abcd, 1));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}
inline F32 select_le(F32 a, F32 b, F32 x, F32 y) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ), y.v, x.v)};
}
inline float max_of(F32 a) {
    return _mm512_reduce_max_ps(a.v);
}
inline F32 round(F32 a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline F32 scale2(F32 a, F32 n) {
    return {_mm512_scalef_ps(a.v, n.v)};
}
/// Pairs (a, b) of neighbouring groups of `half` lanes become (a + b, a - b).
template <int half>
inline F32 butterfly(F32 x) {
    constexpr __mmask16 high = half == 1   ? 0xAAAA
                               : half == 2 ? 0xCCCC
                               : half == 4 ? 0xF0F0
                                           : 0xFF00;
    const __m512 other = half == 1   ? _mm512_permute_ps(x.v, 0xB1)
                         : half == 2 ? _mm512_permute_ps(x.v, 0x4E)
                         : half == 4 ? _mm512_shuffle_f32x4(x.v, x.v, 0xB1)
                                     : _mm512_shuffle_f32x4(x.v, x.v, 0x4E);
    return {_mm512_mask_sub_ps(_mm512_add_ps(other, x.v), high, other, x.v)};
}
inline F32 abs(F32 a) {
    return {_mm512_abs_ps(a.v)};
}

#include "cpu/register_tiles.h"
#include "cpu/simd_math.h"

}  // namespace exl3::cpu::avx512simd
namespace exl3::cpu::avx512 {
using namespace exl3::cpu::avx512simd;
}
