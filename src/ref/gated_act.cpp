#include <cmath>
#include <numbers>

#include "core/device.h"
#include "ops/activation.h"

namespace exl3::ref {
namespace {

double activate(double x, Act act) {
    switch (act) {
        case Act::silu: return x / (1 + std::exp(-x));
        // 1 + erf t = erfc -t, without the cancellation at negative t.
        case Act::gelu: return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
        case Act::gelu_tanh:
            return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        case Act::relu2: return x > 0 ? x * x : 0;
    }
    return 0;
}

}  // namespace

void gated_act(Stream&, const GatedActArgs& a) {
    for (int64_t r = 0; r < a.y.shape[0]; ++r)
        for (int64_t i = 0; i < a.y.shape[1]; ++i) {
            const double up = a.up ? a.up.row<float>(r)[i] : 1.0;
            a.y.row<float>(r)[i] =
                static_cast<float>(activate(a.gate.row<float>(r)[i], a.act) * up);
        }
}

}  // namespace exl3::ref
