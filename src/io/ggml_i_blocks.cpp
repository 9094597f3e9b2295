// The IQ types: eight or four elements at a time are an entry of a fixed grid, their signs aside.
#include <bit>

#include "io/ggml_blocks.h"
#include "io/ggml_grids.h"

namespace exl3::ggml {
namespace {

constexpr int8_t kNonLinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

// Seven sign bits are stored, the eighth makes their number even.
uint8_t even_signs(uint32_t seven) {
    return static_cast<uint8_t>(seven | (std::popcount(seven) & 1u) << 7);
}

float with_sign(float v, uint8_t signs, int i) {
    return (signs >> i) & 1 ? -v : v;
}

// Eight elements of a grid with three levels.
void put_levels(uint16_t entry, float scale, uint8_t signs, float* y) {
    static constexpr float kLevel[4] = {8, 25, 43, 0};
    for (int i = 0; i < 8; ++i) y[i] = with_sign(scale * kLevel[(entry >> (2 * i)) & 3], signs, i);
}

// Four elements of a grid with eight levels, three bits each.
void put_four(uint16_t entry, const uint8_t* level, float scale, uint8_t signs, float* y) {
    for (int i = 0; i < 4; ++i)
        y[i] = with_sign(scale * static_cast<float>(level[(entry >> (3 * i)) & 7]), signs, i);
}

// Eight elements -1, 0 or 1, shifted by an eighth of the scale.
void put_ternary(uint16_t entry, float scale, bool down, float* y) {
    const float shift = down ? -0.125f : 0.125f;
    for (int i = 0; i < 8; ++i)
        y[i] = scale * (static_cast<float>(((entry >> (2 * i)) & 3) - 1) + shift);
}

float quarter_scale(float d, int s) {
    return d * (0.5f + static_cast<float>(s)) * 0.25f;
}

}  // namespace

// d, 8 x (4 grid indices of 8 bits, u32 of 4 x 7 sign bits and a 4-bit scale)
void decode_iq2_xxs(const uint8_t* b, float* y) {
    const float d = half_at(b);
    for (int g = 0; g < 8; ++g) {
        const uint8_t* index = b + 2 + 8 * g;
        const uint32_t tail = u32_at(index + 4);
        const float scale = quarter_scale(d, static_cast<int>(tail >> 28));
        for (int k = 0; k < 4; ++k)
            put_levels(kGridIq2Xxs[index[k]], scale, even_signs((tail >> (7 * k)) & 127),
                       y + 32 * g + 8 * k);
    }
}

// d, 32 x (9 bits of grid index, 7 sign bits), 16 x 4-bit scales
void decode_iq2_xs(const uint8_t* b, float* y) {
    const float d = half_at(b);
    const uint8_t* scales = b + 66;
    for (int o = 0; o < 32; ++o) {
        const uint32_t q = u16_at(b + 2 + 2 * o);
        put_levels(kGridIq2Xs[q & 511], quarter_scale(d, nibble(scales[o / 4], o / 2 % 2)),
                   even_signs(q >> 9), y + 8 * o);
    }
}

// d, 32 x low 8 bits of the grid index, 32 x 8 signs, 32 x its high 2 bits, 16 x 4-bit scales
void decode_iq2_s(const uint8_t* b, float* y) {
    const float d = half_at(b);
    const uint8_t *low = b + 2, *signs = b + 34, *high = b + 66, *scales = b + 74;
    for (int o = 0; o < 32; ++o) {
        const int index = low[o] | ((high[o / 4] >> (2 * (o % 4))) & 3) << 8;
        put_levels(kGridIq2S[index], quarter_scale(d, nibble(scales[o / 4], o / 2 % 2)), signs[o],
                   y + 8 * o);
    }
}

// d, 64 x 8 bits of grid index, 8 x u32 of 4 x 7 sign bits and a 4-bit scale
void decode_iq3_xxs(const uint8_t* b, float* y) {
    static constexpr uint8_t kLevel[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    const float d = half_at(b);
    for (int g = 0; g < 8; ++g) {
        const uint32_t tail = u32_at(b + 66 + 4 * g);
        const float scale = d * (0.5f + static_cast<float>(tail >> 28)) * 0.5f;
        for (int k = 0; k < 8; ++k) {
            const uint8_t signs = even_signs((tail >> (7 * (k / 2))) & 127);
            put_four(kGridIq3Xxs[b[2 + 8 * g + k]], kLevel, scale,
                     static_cast<uint8_t>(signs >> (4 * (k % 2))), y + 32 * g + 4 * k);
        }
    }
}

// d, 64 x low 8 bits of the grid index, 64 x its ninth bit, 32 x 8 signs, 8 x 4-bit scales
void decode_iq3_s(const uint8_t* b, float* y) {
    static constexpr uint8_t kLevel[8] = {1, 3, 5, 7, 9, 11, 13, 15};
    const float d = half_at(b);
    const uint8_t *low = b + 2, *high = b + 66, *signs = b + 74, *scales = b + 106;
    for (int t = 0; t < 64; ++t) {
        const int index = low[t] | ((high[t / 8] >> (t % 8)) & 1) << 8;
        const float scale = d * static_cast<float>(1 + 2 * nibble(scales[t / 16], t / 8 % 2));
        put_four(kGridIq3S[index], kLevel, scale,
                 static_cast<uint8_t>(signs[t / 2] >> (4 * (t % 2))), y + 4 * t);
    }
}

// d, 32 x low 8 bits of the grid index, 8 x u16: 4 x its high 3 bits, 3-bit scale, shift down
void decode_iq1_s(const uint8_t* b, float* y) {
    const float d = half_at(b);
    for (int g = 0; g < 8; ++g) {
        const int head = u16_at(b + 34 + 2 * g);
        const float scale = d * static_cast<float>(2 * ((head >> 12) & 7) + 1);
        for (int k = 0; k < 4; ++k) {
            const int index = b[2 + 4 * g + k] | ((head >> (3 * k)) & 7) << 8;
            put_ternary(kGridIq1[index], scale, head & 0x8000, y + 32 * g + 8 * k);
        }
    }
}

// 32 x low 8 bits of the grid index, 32 x (its high 3 bits, shift down), 4 x u16: 4 x 3-bit scales
// and four bits of d on top
void decode_iq1_m(const uint8_t* b, float* y) {
    const uint8_t *low = b, *high = b + 32, *scales = b + 48;
    uint16_t bits = 0;
    for (int i = 0; i < 4; ++i)
        bits = static_cast<uint16_t>(bits | (u16_at(scales + 2 * i) >> 12) << (4 * i));
    const float d = to_float(f16{bits});
    for (int o = 0; o < 32; ++o) {
        const int top = nibble(high[o / 2], o % 2);
        const int s = (u16_at(scales + 2 * (o / 8)) >> (3 * (o / 2 % 4))) & 7;
        put_ternary(kGridIq1[low[o] | (top & 7) << 8], d * static_cast<float>(2 * s + 1), top & 8,
                    y + 8 * o);
    }
}

// d, 32 x 4 bits, the halves of the block in the two nibbles
void decode_iq4_nl(const uint8_t* b, float* y) {
    const float d = half_at(b);
    for (int i = 0; i < 32; ++i)
        y[i] = d * static_cast<float>(kNonLinear[nibble(b[2 + i % 16], i / 16)]);
}

// d, 8 x high 2 bits of the scale in a u16, 8 x its low 4 bits, 8 groups as in IQ4_NL
void decode_iq4_xs(const uint8_t* b, float* y) {
    const float d = half_at(b);
    const int high = u16_at(b + 2);
    for (int g = 0; g < 8; ++g) {
        const int s = nibble(b[4 + g / 2], g % 2) | ((high >> (2 * g)) & 3) << 4;
        const float scale = d * static_cast<float>(s - 32);
        for (int i = 0; i < 32; ++i)
            y[32 * g + i] =
                scale * static_cast<float>(kNonLinear[nibble(b[8 + 16 * g + i % 16], i / 16)]);
    }
}

}  // namespace exl3::ggml
