#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/device.h"
#include "ops/activation.h"

namespace exl3::ref {
namespace {

double activate(double x, const GatedActArgs& a) {
    switch (a.act) {
        case Act::silu: return x / (1 + std::exp(-x));
        // 1 + erf t = erfc -t, without the cancellation at negative t.
        case Act::gelu: return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
        case Act::gelu_tanh:
            return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        case Act::relu2: return x > 0 ? x * x : 0;
        case Act::xielu:
            return a.xielu.beta * x +
                   (x > 0 ? a.xielu.positive * x * x
                          : a.xielu.negative * (std::expm1(std::min<double>(x, a.xielu.eps)) - x));
        case Act::oai: return x / (1 + std::exp(-1.702 * x));
    }
    return 0;
}

}  // namespace

void gated_act(Stream&, const GatedActArgs& a) {
    const double limit = a.limit > 0 ? a.limit : INFINITY;
    const bool before = a.clamp == ActClamp::before;
    for (int64_t r = 0; r < a.y.shape[0]; ++r)
        for (int64_t i = 0; i < a.y.shape[1]; ++i) {
            const double gate = a.gate.row<float>(r)[i];
            double v = activate(before ? std::min(gate, limit) : gate, a);
            if (!before) v = std::min(v, limit);
            double up = a.up ? std::clamp<double>(a.up.row<float>(r)[i], -limit, limit) : 1.0;
            if (a.act == Act::oai) up += 1;
            a.y.row<float>(r)[i] = static_cast<float>(v * up);
        }
}

}  // namespace exl3::ref
