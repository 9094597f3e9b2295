#include "io/ggml_types.h"

#include "base/error.h"
#include "io/ggml_blocks.h"

namespace exl3 {
namespace {

using namespace ggml;

constexpr GgmlLayout kLayouts[] = {
    {GgmlType::f32, "F32", 1, 4, decode_f32},
    {GgmlType::f16, "F16", 1, 2, decode_f16},
    {GgmlType::bf16, "BF16", 1, 2, decode_bf16},
    {GgmlType::f64, "F64", 1, 8, decode_f64},
    {GgmlType::q4_0, "Q4_0", 32, 18, decode_q4_0},
    {GgmlType::q4_1, "Q4_1", 32, 20, decode_q4_1},
    {GgmlType::q5_0, "Q5_0", 32, 22, decode_q5_0},
    {GgmlType::q5_1, "Q5_1", 32, 24, decode_q5_1},
    {GgmlType::q8_0, "Q8_0", 32, 34, decode_q8_0},
    {GgmlType::q2_k, "Q2_K", 256, 84, decode_q2_k},
    {GgmlType::q3_k, "Q3_K", 256, 110, decode_q3_k},
    {GgmlType::q4_k, "Q4_K", 256, 144, decode_q4_k},
    {GgmlType::q5_k, "Q5_K", 256, 176, decode_q5_k},
    {GgmlType::q6_k, "Q6_K", 256, 210, decode_q6_k},
    {GgmlType::q8_k, "Q8_K", 256, 292, decode_q8_k},
    {GgmlType::iq1_s, "IQ1_S", 256, 50, decode_iq1_s},
    {GgmlType::iq1_m, "IQ1_M", 256, 56, decode_iq1_m},
    {GgmlType::iq2_xxs, "IQ2_XXS", 256, 66, decode_iq2_xxs},
    {GgmlType::iq2_xs, "IQ2_XS", 256, 74, decode_iq2_xs},
    {GgmlType::iq2_s, "IQ2_S", 256, 82, decode_iq2_s},
    {GgmlType::iq3_xxs, "IQ3_XXS", 256, 98, decode_iq3_xxs},
    {GgmlType::iq3_s, "IQ3_S", 256, 110, decode_iq3_s},
    {GgmlType::iq4_nl, "IQ4_NL", 32, 18, decode_iq4_nl},
    {GgmlType::iq4_xs, "IQ4_XS", 256, 136, decode_iq4_xs},
    {GgmlType::tq1_0, "TQ1_0", 256, 54, decode_tq1_0},
    {GgmlType::tq2_0, "TQ2_0", 256, 66, decode_tq2_0},
    {GgmlType::mxfp4, "MXFP4", 32, 17, decode_mxfp4},
};

}  // namespace

const GgmlLayout* ggml_layout(uint32_t type) {
    for (const GgmlLayout& l : kLayouts)
        if (static_cast<uint32_t>(l.type) == type) return &l;
    return nullptr;
}

void ggml_to_f32(const GgmlLayout& layout, const void* blocks, int64_t n, float* out) {
    EXL3_CHECK(n >= 0 && n % layout.elements == 0, layout.name);
    const auto* b = static_cast<const uint8_t*>(blocks);
    for (int64_t i = 0; i < n; i += layout.elements, b += layout.bytes) layout.decode(b, out + i);
}

}  // namespace exl3
