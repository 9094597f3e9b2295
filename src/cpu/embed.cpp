#define EXL3_ISA_FILE "cpu/embed.cpp"
#include "cpu/isa.h"

#include "cpu/elementwise.h"
#include "ops/embed.h"

EXL3_ISA_BEGIN

template <typename T>
void embed_as(const EmbedArgs& a, int64_t row, int64_t begin, int64_t end) {
    const T* from = a.table.row<T>(a.tokens.as<int32_t>()[row]);
    float* y = a.y.row<float>(row);
    for (int64_t i = begin; i < end; i += F32::width) {
        const int64_t some = lesser(F32::width, end - i);
        (F32::load(from + i, some) * F32::set(a.scale)).store(y + i, some);
    }
}

void embed_run(const EmbedArgs& a, int64_t row, int64_t begin, int64_t end) {
    switch (a.table.dtype) {
        case DType::f16: return embed_as<f16>(a, row, begin, end);
        case DType::bf16: return embed_as<bf16>(a, row, begin, end);
        default: return embed_as<float>(a, row, begin, end);
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void embed(Stream& s, const EmbedArgs& a) {
    const auto run = EXL3_ISA_PICK(s, embed_run);
    for_each_run(pool_of(s), a.y.shape[0], a.y.shape[1],
                 [&](int64_t r, int64_t b, int64_t e) { run(a, r, b, e); });
}

}  // namespace exl3::cpu
#endif
