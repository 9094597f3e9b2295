#include "train/norm.h"

#include <cmath>

#include "io/convert.h"

namespace exl3::train {

RmsNorm::RmsNorm(const Checkpoint& c, const NormSpec& spec, int64_t dim)
    : dim_(dim), eps_(spec.eps), weight_(static_cast<size_t>(dim), 1.0f) {
    if (!spec.key.empty()) weight_ = read_f32(c, (spec.key / "weight").str());
    EXL3_CHECK(static_cast<int64_t>(weight_.size()) == dim);
    if (!spec.key.empty())
        for (float& w : weight_) w += spec.weight_bias;
}

double RmsNorm::inverse_rms(const float* x) const {
    double sum = 0;
    for (int64_t i = 0; i < dim_; ++i) sum += static_cast<double>(x[i]) * x[i];
    return 1 / std::sqrt(sum / static_cast<double>(dim_) + eps_);
}

Matrix RmsNorm::forward(const Matrix& x) const {
    Matrix y(x.rows, x.cols);
    for (size_t at = 0; at < x.data.size(); at += static_cast<size_t>(dim_)) {
        const float* from = x.data.data() + at;
        const auto r = static_cast<float>(inverse_rms(from));
        for (int64_t i = 0; i < dim_; ++i)
            y.data[at + static_cast<size_t>(i)] = from[i] * r * weight_[static_cast<size_t>(i)];
    }
    return y;
}

// With r = 1/rms and g = dy * weight: dx = r (g - x r^2 mean(g x)).
Matrix RmsNorm::backward(const Matrix& x, const Matrix& dy) const {
    Matrix dx(x.rows, x.cols);
    for (size_t at = 0; at < x.data.size(); at += static_cast<size_t>(dim_)) {
        const float *from = x.data.data() + at, *gradient = dy.data.data() + at;
        const double r = inverse_rms(from);
        double dot = 0;
        for (int64_t i = 0; i < dim_; ++i)
            dot += static_cast<double>(gradient[i]) * weight_[static_cast<size_t>(i)] * from[i];
        const auto along = static_cast<float>(dot / static_cast<double>(dim_) * r * r);
        const auto scale = static_cast<float>(r);
        for (int64_t i = 0; i < dim_; ++i)
            dx.data[at + static_cast<size_t>(i)] =
                scale * (gradient[i] * weight_[static_cast<size_t>(i)] - from[i] * along);
    }
    return dx;
}

}  // namespace exl3::train
