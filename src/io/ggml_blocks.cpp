// Plain numbers and blocks of 32.
#include "io/ggml_blocks.h"

#include <bit>

namespace exl3::ggml {
namespace {

constexpr int kBlock = 32;

// Numbers of four bits stand as two halves: byte i holds element i low and element i + 16 high.
int four_bits(const uint8_t* q, int i) {
    return nibble(q[i % 16], i / 16);
}

}  // namespace

void decode_f32(const uint8_t* b, float* y) {
    std::memcpy(y, b, sizeof *y);
}

void decode_f16(const uint8_t* b, float* y) {
    *y = half_at(b);
}

void decode_bf16(const uint8_t* b, float* y) {
    *y = to_float(bf16{u16_at(b)});
}

void decode_f64(const uint8_t* b, float* y) {
    double v = 0;
    std::memcpy(&v, b, sizeof v);
    *y = static_cast<float>(v);
}

// d, 32 x 4 bits; value d (q - 8)
void decode_q4_0(const uint8_t* b, float* y) {
    const float d = half_at(b);
    for (int i = 0; i < kBlock; ++i) y[i] = d * static_cast<float>(four_bits(b + 2, i) - 8);
}

// d, minimum in f16, 32 x 4 bits; value d q + minimum
void decode_q4_1(const uint8_t* b, float* y) {
    const float d = half_at(b), min = half_at(b + 2);
    for (int i = 0; i < kBlock; ++i) y[i] = d * static_cast<float>(four_bits(b + 4, i)) + min;
}

// d, the fifth bits as one u32, 32 x 4 bits; value d (q - 16)
void decode_q5_0(const uint8_t* b, float* y) {
    const float d = half_at(b);
    const uint32_t high = u32_at(b + 2);
    for (int i = 0; i < kBlock; ++i) {
        const int q = four_bits(b + 6, i) | static_cast<int>((high >> i) & 1) << 4;
        y[i] = d * static_cast<float>(q - 16);
    }
}

// d, minimum in f16, the fifth bits as one u32, 32 x 4 bits; value d q + minimum
void decode_q5_1(const uint8_t* b, float* y) {
    const float d = half_at(b), min = half_at(b + 2);
    const uint32_t high = u32_at(b + 4);
    for (int i = 0; i < kBlock; ++i) {
        const int q = four_bits(b + 8, i) | static_cast<int>((high >> i) & 1) << 4;
        y[i] = d * static_cast<float>(q) + min;
    }
}

// d, 32 x i8
void decode_q8_0(const uint8_t* b, float* y) {
    const float d = half_at(b);
    for (int i = 0; i < kBlock; ++i) y[i] = d * static_cast<float>(static_cast<int8_t>(b[2 + i]));
}

// The exponent as one byte (OCP microscaling E8M0), 32 x 4 bits (E2M1)
void decode_mxfp4(const uint8_t* b, float* y) {
    // Twice the values of E2M1, so that they are integers; the scale is halved instead.
    static constexpr int8_t kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const uint32_t e = b[0];
    // 2^(e - 128): below the normal range of f32 for the two smallest exponents.
    const float d = std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
    for (int i = 0; i < kBlock; ++i) y[i] = d * static_cast<float>(kTwice[four_bits(b + 1, i)]);
}

}  // namespace exl3::ggml
