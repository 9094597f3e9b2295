#include <cmath>

#include "core/device.h"
#include "ops/activation.h"

namespace exl3::ref {

void head_gate(Stream&, const HeadGateArgs& a) {
    const bool each = a.gate.shape[2] > 1;
    for (int64_t r = 0; r < a.x.rows(); ++r)
        for (int64_t i = 0; i < a.x.shape[2]; ++i) {
            const double g = a.gate.row<float>(r)[each ? i : 0];
            const double factor = a.act == GateAct::sigmoid ? 1 / (1 + std::exp(-g))
                                  : g > 20                  ? g
                                                            : std::log1p(std::exp(g));
            a.x.row<float>(r)[i] = static_cast<float>(a.x.row<float>(r)[i] * factor);
        }
}

}  // namespace exl3::ref
