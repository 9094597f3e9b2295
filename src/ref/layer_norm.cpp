#include <cmath>

#include "core/device.h"
#include "core/load.h"
#include "ops/norm.h"

namespace exl3::ref {

void layer_norm(Stream&, const LayerNormArgs& a) {
    const int64_t dim = a.x.shape[1], weights = a.weight.rows();
    for (int64_t r = 0; r < a.x.shape[0]; ++r) {
        const float* x = a.x.row<float>(r);
        double mean = 0, square = 0;
        for (int64_t i = 0; i < dim; ++i) mean += x[i];
        mean /= static_cast<double>(dim);
        for (int64_t i = 0; i < dim; ++i) square += (x[i] - mean) * (x[i] - mean);
        const double scale = 1.0 / std::sqrt(square / static_cast<double>(dim) + a.eps);
        for (int64_t i = 0; i < dim; ++i) {
            const double bias = a.bias ? load_f32(a.bias, 0, i) : 0;
            a.y.row<float>(r)[i] = static_cast<float>(
                (x[i] - mean) * scale * load_f32(a.weight, r % weights, i) + bias);
        }
    }
}

}  // namespace exl3::ref
