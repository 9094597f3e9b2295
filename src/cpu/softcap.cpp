#define EXL3_ISA_FILE "cpu/softcap.cpp"
#include "cpu/isa.h"

#include "cpu/elementwise.h"
#include "ops/activation.h"

EXL3_ISA_BEGIN

void softcap_run(float* x, int64_t n, float cap) {
    const F32 c = F32::set(cap);
    for (int64_t i = 0; i < n; i += F32::width) {
        const int64_t some = lesser(F32::width, n - i);
        (c * tanh(F32::load(x + i, some) / c)).store(x + i, some);
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void softcap(Stream& s, const SoftcapArgs& a) {
    const auto run = EXL3_ISA_PICK(s, softcap_run);
    for_each_run(pool_of(s), a.x.shape[0], a.x.shape[1], [&](int64_t r, int64_t b, int64_t e) {
        run(a.x.row<float>(r) + b, e - b, a.cap);
    });
}

}  // namespace exl3::cpu
#endif
