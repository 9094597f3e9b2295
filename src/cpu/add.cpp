#define EXL3_ISA_FILE "cpu/add.cpp"
#include "cpu/isa.h"

#include "cpu/elementwise.h"
#include "ops/activation.h"

EXL3_ISA_BEGIN

void add_run(const float* x, float* y, int64_t n, float scale) {
    const F32 s = F32::set(scale);
    int64_t i = 0;
    for (; i + F32::width <= n; i += F32::width)
        fma(F32::load(x + i), s, F32::load(y + i)).store(y + i);
    if (i < n) fma(F32::load(x + i, n - i), s, F32::load(y + i, n - i)).store(y + i, n - i);
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void add(Stream& s, const AddArgs& a) {
    const auto run = EXL3_ISA_PICK(s, add_run);
    for_each_run(pool_of(s), a.y.shape[0], a.y.shape[1], [&](int64_t r, int64_t b, int64_t e) {
        run(a.x.row<float>(r) + b, a.y.row<float>(r) + b, e - b, a.scale);
    });
}

}  // namespace exl3::cpu
#endif
