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
    void store(float* p) const { _mm256_storeu_ps(p, v); }
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

}  // namespace exl3::cpu::avx2
