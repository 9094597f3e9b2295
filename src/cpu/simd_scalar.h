// One value wide: the fallback of every machine and the shape of the SIMD wrappers.
namespace exl3::cpu::scalar {

struct F32 {
    static constexpr int width = 1;
    float v;
    static F32 load(const float* p) { return {*p}; }
    static F32 load(const f16* p) { return {to_float(*p)}; }
    static F32 load(const bf16* p) { return {to_float(*p)}; }
    static F32 set(float x) { return {x}; }
    void store(float* p) const { *p = v; }
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
inline float max_of(F32 a) {
    return a.v;
}
/// Nearest integer, ties to even.
inline F32 round(F32 a) {
    return {std::nearbyint(a.v)};
}
/// a * 2^n for integral n in [-126, 127].
inline F32 scale2(F32 a, F32 n) {
    return {a.v * std::bit_cast<float>(static_cast<uint32_t>(static_cast<int>(n.v) + 127) << 23)};
}

}  // namespace exl3::cpu::scalar
