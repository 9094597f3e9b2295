#define EXL3_ISA_FILE "cpu/combine_rows.cpp"
#include "cpu/isa.h"

#include "cpu/elementwise.h"
#include "ops/moe.h"

EXL3_ISA_BEGIN

void combine_run(const CombineRowsArgs& a, int64_t row, int64_t begin, int64_t end) {
    const int64_t count = a.slot.shape[1];
    const int32_t* slot = a.slot.row<int32_t>(row);
    const float* weight = a.weight.row<float>(row);
    float* y = a.y.row<float>(row);
    for (int64_t i = begin; i < end; i += F32::width) {
        const int64_t n = lesser(F32::width, end - i);
        F32 sum = F32::set(0);
        for (int64_t j = 0; j < count; ++j)
            sum = fma(F32::load(a.x.row<float>(slot[j]) + i, n), F32::set(weight[j]), sum);
        sum.store(y + i, n);
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void combine_rows(Stream& s, const CombineRowsArgs& a) {
    const auto run = EXL3_ISA_PICK(s, combine_run);
    for_each_run(pool_of(s), a.y.shape[0], a.y.shape[1],
                 [&](int64_t r, int64_t begin, int64_t end) { run(a, r, begin, end); });
}

}  // namespace exl3::cpu
#endif
