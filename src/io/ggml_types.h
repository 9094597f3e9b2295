#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace exl3 {

/// Element types of GGUF tensors under the numbers that the format gives them. Quantized types
/// pack a fixed number of elements of one row into a block with its own scales.
enum class GgmlType : uint32_t {
    f32 = 0,
    f16 = 1,
    q4_0 = 2,
    q4_1 = 3,
    q5_0 = 6,
    q5_1 = 7,
    q8_0 = 8,
    q2_k = 10,
    q3_k = 11,
    q4_k = 12,
    q5_k = 13,
    q6_k = 14,
    q8_k = 15,
    iq2_xxs = 16,
    iq2_xs = 17,
    iq3_xxs = 18,
    iq1_s = 19,
    iq4_nl = 20,
    iq3_s = 21,
    iq2_s = 22,
    iq4_xs = 23,
    f64 = 28,
    iq1_m = 29,
    bf16 = 30,
    tq1_0 = 34,
    tq2_0 = 35,
    mxfp4 = 39
};

/// How a type lays out its elements.
struct GgmlLayout {
    GgmlType type{};
    std::string_view name;  ///< "Q4_K", as people call it
    int elements = 0;       ///< of a block; rows hold whole blocks
    int bytes = 0;          ///< of a block
    void (*decode)(const uint8_t* block, float* out) = nullptr;  ///< one block, `elements` floats
};

/// The layout of the type with this number; nullptr for numbers that are not of a known type:
/// integers, types that no file holds (Q8_1) and those withdrawn from the format.
const GgmlLayout* ggml_layout(uint32_t type);

/// Decodes `n` elements (whole blocks) of a type into f32. The arithmetic is that of the format's
/// reference: f32, scale times number, so results are the same on every machine.
void ggml_to_f32(const GgmlLayout& layout, const void* blocks, int64_t n, float* out);

}  // namespace exl3
