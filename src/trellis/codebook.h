#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/half.h"

namespace exl3 {

/// The three maps from a 16-bit trellis state to a weight (docs/format.md "Codebooks").
enum class CodebookKind : uint8_t { three_inst, mcg, mul1 };

/// Converters before v0.0.9 let the user choose the multiplier and stored it in the marker tensor,
/// so it travels with the kind.
struct Codebook {
    CodebookKind kind = CodebookKind::mul1;
    uint32_t multiplier = 0x83DCD12Du;
    constexpr bool operator==(const Codebook&) const = default;
};

inline constexpr Codebook kThreeInst{CodebookKind::three_inst, 89226354u};
inline constexpr Codebook kMcg{CodebookKind::mcg, 0xCBAC1FEDu};
inline constexpr Codebook kMul1{CodebookKind::mul1, 0x83DCD12Du};

/// Added to the product by 3inst only.
inline constexpr uint32_t kThreeInstAddend = 64248484u;
/// 3inst and mcg keep the sign, the two low exponent bits and the mantissa of each half ...
inline constexpr uint32_t kHalfPairMask = 0x8FFF8FFFu;
/// ... and xor them with this, which gives magnitudes in [0.125, 2).
inline constexpr uint32_t kHalfPairXor = 0x3B603B60u;
/// mul1: weight = fma(1024 + byte sum, kMul1Scale, kMul1Bias) with one rounding to f16.
inline constexpr float kMul1Scale = 0x1.bb8p-8f;  // f16 0x1EEE = 0.0067672729...
inline constexpr float kMul1Bias = -10.3828125f;  // f16 0xC931
/// Rms of 3inst; the quantizer folds it into suh for every codebook.
inline constexpr float kCodebookScale = 1.24371088f;

/// "mul1", "mcg" or "3inst".
std::string_view name_of(CodebookKind kind);
/// The standard codebook of that name, or nothing.
std::optional<Codebook> codebook_named(std::string_view name);

/// The sum of the four bytes of state * multiplier, 0 to 1020.
constexpr uint32_t mul1_byte_sum(uint32_t state, uint32_t multiplier) {
    const uint32_t h = state * multiplier;
    return (h & 0xff) + ((h >> 8) & 0xff) + ((h >> 16) & 0xff) + (h >> 24);
}

/// The weight of a state, bit-exact on every device. Pure.
constexpr f16 decode_state(uint16_t state, Codebook codebook) {
    if (codebook.kind == CodebookKind::mul1) {
        // Both are multiples of 2^-18 below 16, so product and sum are exact in f32 and the only
        // rounding is the last, as in a fused f16 multiply-add.
        const float sum = static_cast<float>(1024 + mul1_byte_sum(state, codebook.multiplier));
        return to_f16(sum * kMul1Scale + kMul1Bias);
    }
    uint32_t h = state * codebook.multiplier;
    if (codebook.kind == CodebookKind::three_inst) h += kThreeInstAddend;
    h = (h & kHalfPairMask) ^ kHalfPairXor;
    return to_f16(to_float(f16{static_cast<uint16_t>(h)}) +
                  to_float(f16{static_cast<uint16_t>(h >> 16)}));
}

/// (65536) f16: decode_state of every state.
std::vector<f16> codebook_table(Codebook codebook);

}  // namespace exl3
