// The K and TQ types: blocks of 256 elements in groups of 16 or 32 with small integer scales.
#include "io/ggml_blocks.h"

namespace exl3::ggml {
namespace {

// Elements of two bits: two halves of 128; in each, 32 bytes hold four rows of 32 elements.
struct TwoBits {
    int half, row, column;  // element = 128 half + 32 row + column
    explicit TwoBits(int i) : half(i / 128), row(i / 32 % 4), column(i % 32) {}
    int of(const uint8_t* q) const { return (q[32 * half + column] >> (2 * row)) & 3; }
};

struct ScaleMin {
    int scale, min;
};

// Eight pairs of six-bit numbers in twelve bytes. The first four pairs fill the low bits of bytes 0
// to 7; the others have their low four bits in bytes 8 to 11 and their high two on top of the
// first.
ScaleMin scale_min(const uint8_t* s, int group) {
    if (group < 4) return {s[group] & 63, s[group + 4] & 63};
    return {(s[group + 4] & 15) | (s[group - 4] >> 6) << 4, (s[group + 4] >> 4) | (s[group] >> 6)
                                                                                      << 4};
}

// Sixteen six-bit scales in twelve bytes: low four bits in bytes 0 to 7, high two in 8 to 11.
int six_bit_scale(const uint8_t* s, int group) {
    const int low = nibble(s[group % 8], group / 8);
    const int high = (s[8 + group % 4] >> (2 * (group / 4))) & 3;
    return (low | high << 4) - 32;
}

// Groups of 32: two groups share 32 bytes, the first in the low nibbles.
int group_nibble(const uint8_t* q, int group, int i) {
    return nibble(q[32 * (group / 2) + i], group % 2);
}

}  // namespace

// 16 x (4 bits scale, 4 bits minimum), 256 x 2 bits, d, scale of the minima in f16
void decode_q2_k(const uint8_t* b, float* y) {
    const uint8_t *scales = b, *q = b + 16;
    const float d = half_at(b + 80), dmin = half_at(b + 82);
    for (int i = 0; i < kSuperBlock; ++i) {
        const uint8_t s = scales[i / 16];
        y[i] = d * static_cast<float>(s & 15) * static_cast<float>(TwoBits(i).of(q)) -
               dmin * static_cast<float>(s >> 4);
    }
}

// 256 x the third bit (byte = column, bit = group of 32), 256 x 2 bits, 16 scales, d
void decode_q3_k(const uint8_t* b, float* y) {
    const uint8_t *high = b, *q = b + 32, *scales = b + 96;
    const float d = half_at(b + 108);
    for (int i = 0; i < kSuperBlock; ++i) {
        // The third bit says that nothing is to be taken off.
        const int value = TwoBits(i).of(q) - (((high[i % 32] >> (i / 32)) & 1) ? 0 : 4);
        y[i] = d * static_cast<float>(six_bit_scale(scales, i / 16)) * static_cast<float>(value);
    }
}

// d, scale of the minima in f16, 8 x (scale, minimum), 256 x 4 bits
void decode_q4_k(const uint8_t* b, float* y) {
    const float d = half_at(b), dmin = half_at(b + 2);
    for (int g = 0; g < 8; ++g) {
        const ScaleMin s = scale_min(b + 4, g);
        const float scale = d * static_cast<float>(s.scale), min = dmin * static_cast<float>(s.min);
        for (int i = 0; i < 32; ++i)
            y[32 * g + i] = scale * static_cast<float>(group_nibble(b + 16, g, i)) - min;
    }
}

// As Q4_K, with the fifth bits (byte = column, bit = group) before the 4 bits
void decode_q5_k(const uint8_t* b, float* y) {
    const float d = half_at(b), dmin = half_at(b + 2);
    const uint8_t *high = b + 16, *q = b + 48;
    for (int g = 0; g < 8; ++g) {
        const ScaleMin s = scale_min(b + 4, g);
        const float scale = d * static_cast<float>(s.scale), min = dmin * static_cast<float>(s.min);
        for (int i = 0; i < 32; ++i) {
            const int value = group_nibble(q, g, i) | ((high[i] >> g) & 1) << 4;
            y[32 * g + i] = scale * static_cast<float>(value) - min;
        }
    }
}

// 256 x the low 4 bits, 256 x the high 2 bits, 16 x i8 scales, d
void decode_q6_k(const uint8_t* b, float* y) {
    const uint8_t *low = b, *high = b + 128, *scales = b + 192;
    const float d = half_at(b + 208);
    for (int i = 0; i < kSuperBlock; ++i) {
        const TwoBits at(i);
        // In each half, rows 0 and 1 are the low nibbles of its 64 bytes, rows 2 and 3 the high.
        const uint8_t byte = low[64 * at.half + 32 * (at.row % 2) + at.column];
        const int value = (nibble(byte, at.row / 2) | at.of(high) << 4) - 32;
        y[i] =
            d * static_cast<float>(static_cast<int8_t>(scales[i / 16])) * static_cast<float>(value);
    }
}

// d in f32, 256 x i8, sums of groups that only products need
void decode_q8_k(const uint8_t* b, float* y) {
    float d = 0;
    std::memcpy(&d, b, sizeof d);
    for (int i = 0; i < kSuperBlock; ++i)
        y[i] = d * static_cast<float>(static_cast<int8_t>(b[4 + i]));
}

// 48 bytes of five ternary digits, 4 bytes of four, d. A byte is a fraction in base 3: digit n is
// the whole part of three times what is left after n multiplications.
void decode_tq1_0(const uint8_t* b, float* y) {
    static constexpr uint8_t kPower[5] = {1, 3, 9, 27, 81};
    const float d = half_at(b + 52);
    const auto run = [&](const uint8_t* q, int bytes, int digits) {
        for (int n = 0; n < digits; ++n)
            for (int i = 0; i < bytes; ++i) {
                const auto rest = static_cast<uint8_t>(q[i] * kPower[n]);
                *y++ = d * static_cast<float>((rest * 3 >> 8) - 1);
            }
    };
    run(b, 32, 5);
    run(b + 32, 16, 5);
    run(b + 48, 4, 4);
}

// 256 x 2 bits, d; value d (q - 1)
void decode_tq2_0(const uint8_t* b, float* y) {
    const float d = half_at(b + 64);
    for (int i = 0; i < kSuperBlock; ++i) y[i] = d * static_cast<float>(TwoBits(i).of(b) - 1);
}

}  // namespace exl3::ggml
