#include <algorithm>
#include <cmath>

#include "core/device.h"
#include "ops/recurrence.h"

namespace exl3::ref {
namespace {

double softplus(double x) {
    return x > 20 ? x : std::log1p(std::exp(x));
}

}  // namespace

void recurrence_gates(Stream&, const RecurrenceGatesArgs& a) {
    for (int64_t t = 0; t < a.a.shape[0]; ++t)
        for (int64_t h = 0; h < a.a.shape[1]; ++h) {
            const double x = static_cast<double>(a.a.row<float>(t)[h]) + a.step_bias.as<float>()[h];
            const double step = std::clamp<double>(softplus(x), a.step_min, a.step_max);
            const double decay = -std::exp(static_cast<double>(a.a_log.as<float>()[h])) * step;
            a.log_decay.row<float>(t)[h] = static_cast<float>(decay);
            const double write =
                a.b ? a.write_scale / (1 + std::exp(-static_cast<double>(a.b.row<float>(t)[h])))
                    : step;
            a.write.row<float>(t)[h] = static_cast<float>(write);
        }
}

}  // namespace exl3::ref
