#pragma once
// The block formats of GGUF: each function decodes one block. Layouts are given as a list of fields
// in file order; "d" is always a scale in f16 unless said otherwise.
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace exl3::ggml {

inline constexpr int kSuperBlock = 256;  // elements of a block of the K, IQ and TQ types

inline uint16_t u16_at(const uint8_t* p) {
    uint16_t v = 0;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline uint32_t u32_at(const uint8_t* p) {
    uint32_t v = 0;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline float half_at(const uint8_t* p) {
    return to_float(f16{u16_at(p)});
}
/// One of the two four-bit numbers of a byte, the lower one first.
inline int nibble(uint8_t byte, int which) {
    return (byte >> (4 * which)) & 15;
}

void decode_f32(const uint8_t* b, float* y);
void decode_f16(const uint8_t* b, float* y);
void decode_bf16(const uint8_t* b, float* y);
void decode_f64(const uint8_t* b, float* y);
void decode_q4_0(const uint8_t* b, float* y);
void decode_q4_1(const uint8_t* b, float* y);
void decode_q5_0(const uint8_t* b, float* y);
void decode_q5_1(const uint8_t* b, float* y);
void decode_q8_0(const uint8_t* b, float* y);
void decode_mxfp4(const uint8_t* b, float* y);

void decode_q2_k(const uint8_t* b, float* y);
void decode_q3_k(const uint8_t* b, float* y);
void decode_q4_k(const uint8_t* b, float* y);
void decode_q5_k(const uint8_t* b, float* y);
void decode_q6_k(const uint8_t* b, float* y);
void decode_q8_k(const uint8_t* b, float* y);
void decode_tq1_0(const uint8_t* b, float* y);
void decode_tq2_0(const uint8_t* b, float* y);

void decode_iq1_s(const uint8_t* b, float* y);
void decode_iq1_m(const uint8_t* b, float* y);
void decode_iq2_xxs(const uint8_t* b, float* y);
void decode_iq2_xs(const uint8_t* b, float* y);
void decode_iq2_s(const uint8_t* b, float* y);
void decode_iq3_xxs(const uint8_t* b, float* y);
void decode_iq3_s(const uint8_t* b, float* y);
void decode_iq4_nl(const uint8_t* b, float* y);
void decode_iq4_xs(const uint8_t* b, float* y);

}  // namespace exl3::ggml
