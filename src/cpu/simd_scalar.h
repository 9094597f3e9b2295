// One value wide: the fallback of every machine and the shape of the SIMD wrappers.
namespace exl3::cpu::scalar {

struct F32 {
    static constexpr int width = 1;
    float v;
    static F32 load(const float* p) { return {*p}; }
    static F32 load(const f16* p) { return {to_float(*p)}; }
    static F32 load(const bf16* p) { return {to_float(*p)}; }
    static F32 set(float x) { return {x}; }
    /// The first n values at p, zero in the other lanes; reads nothing past them. 0 <= n <= width.
    template <typename T>
    static F32 load(const T* p, int64_t n) {
        return n > 0 ? load(p) : F32{0};
    }
    void store(float* p) const { *p = v; }
    void store(f16* p) const { *p = to_f16(v); }
    /// Writes the first n lanes only.
    template <typename T>
    void store(T* p, int64_t n) const {
        if (n > 0) store(p);
    }
};
inline F32 operator+(F32 a, F32 b) {
    return {a.v + b.v};
}
inline F32 operator-(F32 a, F32 b) {
    return {a.v - b.v};
}
inline F32 operator*(F32 a, F32 b) {
    return {a.v * b.v};
}
inline F32 operator/(F32 a, F32 b) {
    return {a.v / b.v};
}
inline F32 fma(F32 a, F32 b, F32 c) {
    return {a.v * b.v + c.v};
}
inline F32 max(F32 a, F32 b) {
    return {a.v > b.v ? a.v : b.v};
}
inline F32 min(F32 a, F32 b) {
    return {a.v < b.v ? a.v : b.v};
}
inline float sum(F32 a) {
    return a.v;
}
/// Each pair of neighbouring lanes exchanged; for even widths.
inline F32 swap_pairs(F32 a) {
    return a;
}
/// out[i] = sum of the lanes of the i-th argument, each added in the same order.
inline void sum4(F32 a, F32 b, F32 c, F32 d, float* out) {
    out[0] = a.v, out[1] = b.v, out[2] = c.v, out[3] = d.v;
}
inline float max_of(F32 a) {
    return a.v;
}
/// a <= b ? x : y in each lane; y where either is NaN.
inline F32 select_le(F32 a, F32 b, F32 x, F32 y) {
    return a.v <= b.v ? x : y;
}
/// Nearest integer, ties to even.
inline F32 round(F32 a) {
    return {std::nearbyint(a.v)};
}
/// a * 2^n for integral n in [-126, 127].
inline F32 scale2(F32 a, F32 n) {
    return {a.v * std::bit_cast<float>(static_cast<uint32_t>(static_cast<int>(n.v) + 127) << 23)};
}
/// Pairs (a, b) of neighbouring groups of `half` lanes become (a + b, a - b). half < width.
template <int half>
inline F32 butterfly(F32 x) {
    return x;
}
inline F32 abs(F32 a) {
    return {std::fabs(a.v)};
}

#include "cpu/register_tiles.h"
#include "cpu/simd_math.h"

}  // namespace exl3::cpu::scalar
