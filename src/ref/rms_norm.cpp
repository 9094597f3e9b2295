#include <cmath>

#include "core/device.h"
#include "core/load.h"
#include "ops/norm.h"

namespace exl3::ref {

void rms_norm(Stream&, const RmsNormArgs& a) {
    const int64_t dim = a.x.shape[1];
    for (int64_t r = 0; r < a.x.shape[0]; ++r) {
        const float* x = a.x.row<float>(r);
        float* y = a.y.row<float>(r);
        double sum = 0;
        for (int64_t i = 0; i < dim; ++i) sum += static_cast<double>(x[i]) * x[i];
        const double scale = 1.0 / std::sqrt(sum / static_cast<double>(dim) + a.eps);
        for (int64_t i = 0; i < dim; ++i) {
            const double w =
                a.weight ? load_f32(a.weight, r % a.weight.rows(), i) + a.weight_bias : 1.0;
            y[i] = static_cast<float>(x[i] * scale * w);
        }
    }
}

}  // namespace exl3::ref
