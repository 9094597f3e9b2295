#include <cmath>

#include "core/device.h"
#include "ops/rope.h"

namespace exl3::ref {

void rope(Stream&, const RopeArgs& a) {
    const int64_t heads = a.x.shape[1], dim = a.x.shape[2], half = a.inv_freq.shape[0];
    for (int64_t t = 0; t < a.x.shape[0]; ++t) {
        const double position = a.positions.as<int32_t>()[t];
        for (int64_t h = 0; h < heads; ++h) {
            float* x = a.x.row<float>(t * heads + h);
            for (int64_t i = 0; i < half; ++i) {
                const double angle = position * a.inv_freq.as<float>()[i];
                const double c = std::cos(angle) * a.attention_factor;
                const double s = std::sin(angle) * a.attention_factor;
                float& p = a.style == RopeStyle::neox ? x[i] : x[2 * i];
                float& q = a.style == RopeStyle::neox ? x[i + half] : x[2 * i + 1];
                const double u = p, v = q;
                p = static_cast<float>(u * c - v * s);
                q = static_cast<float>(v * c + u * s);
            }
            if (a.query_scale_beta != 0) {
                const double scale =
                    1 +
                    a.query_scale_beta * std::log1p(std::floor(position / a.query_scale_length));
                for (int64_t i = 0; i < dim; ++i) x[i] = static_cast<float>(x[i] * scale);
            }
        }
    }
}

}  // namespace exl3::ref
