#define EXL3_ISA_FILE "cpu/head_gate.cpp"
#include "cpu/isa.h"

#include "cpu/elementwise.h"
#include "ops/activation.h"

EXL3_ISA_BEGIN

// One gate for a whole row: scalar, as there are few.
inline float gate_factor(GateAct act, float g) {
    if (act == GateAct::sigmoid) return 1 / (1 + std::exp(-g));
    return g > 20 ? g : std::log1p(std::exp(g));
}

void head_gate_row(const HeadGateArgs& a, int64_t row) {
    const int64_t dim = a.x.shape[2];
    const float* gate = a.gate.row<float>(row);
    float* x = a.x.row<float>(row);
    if (a.gate.shape[2] == 1) {
        const F32 factor = F32::set(gate_factor(a.act, gate[0]));
        for (int64_t i = 0; i < dim; i += F32::width) {
            const int64_t n = lesser(F32::width, dim - i);
            (F32::load(x + i, n) * factor).store(x + i, n);
        }
    } else if (a.act == GateAct::sigmoid) {
        for (int64_t i = 0; i < dim; i += F32::width) {
            const int64_t n = lesser(F32::width, dim - i);
            const F32 g = F32::load(gate + i, n);
            (F32::load(x + i, n) / (F32::set(1) + exp(F32::set(0) - g))).store(x + i, n);
        }
    } else {
        for (int64_t i = 0; i < dim; ++i) x[i] *= gate_factor(a.act, gate[i]);
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void head_gate(Stream& s, const HeadGateArgs& a) {
    const auto run = EXL3_ISA_PICK(s, head_gate_row);
    pool_of(s).parallel_for(a.x.rows(), 16, [&](int64_t r, int64_t end) {
        for (; r < end; ++r) run(a, r);
    });
}

}  // namespace exl3::cpu
#endif
