#pragma once
#include <cstdint>
#include <initializer_list>

#include "base/half.h"

namespace exl3 {

// A quantized cache keeps 32 neighbouring channels of a head as one group: rotated by a 32-point
// Hadamard transform, divided by their largest magnitude and rounded to the midpoints of 2^bits
// equal steps. What is here is the definition, on the host; kernels are compared with it.

/// Channels of one group.
inline constexpr int kKvGroup = 32;
inline constexpr float kKvRotation = 0.17677669529663688f;  // 32^-1/2

/// x <- H32 x / sqrt(32), natural (Sylvester) order; its own inverse. x: 32 floats.
inline void kv_rotate(float* x) {
    for (int half = 1; half < kKvGroup; half *= 2)
        for (int i = 0; i < kKvGroup; i += 2 * half)
            for (int j = i; j < i + half; ++j) {
                const float a = x[j], b = x[j + half];
                x[j] = a + b;
                x[j + half] = a - b;
            }
    for (int i = 0; i < kKvGroup; ++i) x[i] *= kKvRotation;
}

/// Stores 32 codes of `bits` bits as bit planes of 8, 4, 2 and 1 bits, the wide ones first and with
/// the high bits. A plane of width w is w words; code j's field is at bit j * w, from the low end
/// of the first word up. @param words  `bits` of them
inline void kv_pack(const uint8_t* codes, int bits, uint32_t* words) {
    int left = bits;
    for (const int width : {8, 4, 2, 1}) {
        if (!(bits & width)) continue;
        left -= width;
        for (int w = 0; w < width; ++w) words[w] = 0;
        for (int j = 0; j < kKvGroup; ++j) {
            const uint32_t field = (static_cast<uint32_t>(codes[j]) >> left) & ((1u << width) - 1);
            words[j * width / 32] |= field << (j * width % 32);
        }
        words += width;
    }
}

/// The codes that kv_pack stored.
inline void kv_unpack(const uint32_t* words, int bits, uint8_t* codes) {
    for (int j = 0; j < kKvGroup; ++j) codes[j] = 0;
    for (const int width : {8, 4, 2, 1}) {
        if (!(bits & width)) continue;
        for (int j = 0; j < kKvGroup; ++j) {
            const uint32_t field = words[j * width / 32] >> (j * width % 32);
            codes[j] = static_cast<uint8_t>((codes[j] << width) | (field & ((1u << width) - 1)));
        }
        words += width;
    }
}

/// Quantizes a group that is rotated already; a NaN in it makes the whole group NaN.
/// @param y  32 floats  @param words  `bits` of them
inline void kv_encode_rotated(const float* y, int bits, uint32_t* words, f16* scale) {
    float top = 0;
    bool finite = true;
    for (int i = 0; i < kKvGroup; ++i) {
        const float magnitude = y[i] < 0 ? -y[i] : y[i];
        finite = finite && magnitude == magnitude;
        top = magnitude > top ? magnitude : top;
    }
    const float s = top + 1e-10f;
    const float m = static_cast<float>(1 << (bits - 1)), most = 2 * m - 1, inverse = 1 / s;
    uint8_t codes[kKvGroup] = {};
    for (int i = 0; i < kKvGroup && finite; ++i) {
        // A product with a power of two is exact, so this rounds as a fused multiply-add does.
        const float q = y[i] * inverse * m + m;
        codes[i] = static_cast<uint8_t>(q < 0 ? 0 : q > most ? most : q);
    }
    kv_pack(codes, bits, words);
    *scale = finite ? to_f16(s > 65504.0f ? 65504.0f : s) : f16{0x7e00};
}

/// Quantizes one group of 32 floats, clamped to the f16 range first.
inline void kv_encode(const float* x, int bits, uint32_t* words, f16* scale) {
    float y[kKvGroup];
    for (int i = 0; i < kKvGroup; ++i)
        y[i] = x[i] > 65504.0f ? 65504.0f : x[i] < -65504.0f ? -65504.0f : x[i];
    kv_rotate(y);
    kv_encode_rotated(y, bits, words, scale);
}

/// A group as attention reads it: still rotated, each value (code - m + 0.5) * scale / m in f16,
/// m = 2^(bits-1). @param y  32 values
inline void kv_decode_rotated(const uint32_t* words, f16 scale, int bits, f16* y) {
    uint8_t codes[kKvGroup];
    kv_unpack(words, bits, codes);
    const float m = static_cast<float>(1 << (bits - 1)), step = to_float(scale) / m;
    for (int i = 0; i < kKvGroup; ++i)
        y[i] = to_f16((static_cast<float>(codes[i]) - m + 0.5f) * step);
}

}  // namespace exl3
