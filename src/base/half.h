#pragma once
#include <bit>
#include <cstdint>

namespace exl3 {

/// IEEE binary16 and bfloat16 as bits; conversions round to nearest even and keep infinities and
/// NaNs. Plain integer code: the same result on every machine.
struct f16 {
    uint16_t bits = 0;
};
struct bf16 {
    uint16_t bits = 0;
};

constexpr float to_float(bf16 h) {
    return std::bit_cast<float>(static_cast<uint32_t>(h.bits) << 16);
}

constexpr float to_float(f16 h) {
    const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16;
    const uint32_t exp = (h.bits >> 10) & 0x1f;
    const uint32_t man = h.bits & 0x3ff;
    if (exp == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (man << 13));
    if (exp == 0) {  // zero or subnormal: man * 2^-24 is exact in f32
        const float v = static_cast<float>(man) * 0x1p-24f;
        return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(v));
    }
    return std::bit_cast<float>(sign | ((exp + 112) << 23) | (man << 13));
}

constexpr bf16 to_bf16(float f) {
    const uint32_t u = std::bit_cast<uint32_t>(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((u >> 16) | 0x40)};
    return {static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16)};
}

constexpr f16 to_f16(float f) {
    const uint32_t u = std::bit_cast<uint32_t>(f);
    const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000);
    const uint32_t a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00)};
    if (a >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00)};  // 65520 and above
    if (a < 0x38800000u) {  // below 2^-14: adding 0.5 aligns the last kept bit with 2^-24
        const float v = std::bit_cast<float>(a) + 0.5f;
        return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(v) - 0x3f000000u))};
    }
    const uint32_t r = a + 0xfff + ((a >> 13) & 1) - 0x38000000u;
    return {static_cast<uint16_t>(sign | (r >> 13))};
}

}  // namespace exl3
