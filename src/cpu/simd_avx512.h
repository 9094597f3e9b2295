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
    void store(float* p) const { _mm512_storeu_ps(p, v); }
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
inline float max_of(F32 a) {
    return _mm512_reduce_max_ps(a.v);
}
inline F32 round(F32 a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline F32 scale2(F32 a, F32 n) {
    return {_mm512_scalef_ps(a.v, n.v)};
}

}  // namespace exl3::cpu::avx512simd
namespace exl3::cpu::avx512 {
using namespace exl3::cpu::avx512simd;
}
