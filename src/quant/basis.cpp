#include "quant/basis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/ops.h"

namespace exl3 {
namespace {

std::vector<float> inverse(const std::vector<float>& x) {
    std::vector<float> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] == 0 ? 0 : 1 / x[i];
    return y;
}

// out = W[:, begin ...] diag(1/sv) H
void scale_columns(Stream& s, ConstView weight, const std::vector<float>& inverse_sv, int64_t begin,
                   View out) {
    const float* scale = inverse_sv.data() + begin;
    for (int64_t i = 0; i < out.shape[0]; ++i) {
        const float* from = weight.row<float>(i) + begin;
        float* to = out.row<float>(i);
        for (int64_t j = 0; j < out.shape[1]; ++j) to[j] = from[j] * scale[j];
    }
    ops::hadamard(s, {.x = out});
    s.synchronize();
}

}  // namespace

f16 scale_to_f16(float v) {
    const f16 h = to_f16(std::clamp(v, -65504.0f, 65504.0f));
    return v != 0 && (h.bits & 0x7fff) == 0 ? f16{static_cast<uint16_t>(h.bits | 1)} : h;
}

void round_to_f16(Basis& basis) {
    for (float& v : basis.su) v = to_float(scale_to_f16(v));
    for (float& v : basis.sv) v = to_float(scale_to_f16(v));
}

void to_inner(Stream& s, ConstView weight, const Basis& basis, int64_t begin, View out) {
    scale_columns(s, weight, inverse(basis.sv), begin, out);
    for (int64_t i = 0; i < out.shape[0]; ++i) {
        const float su = basis.su[static_cast<size_t>(i)], scale = su == 0 ? 0 : 1 / su;
        float* row = out.row<float>(i);
        for (int64_t j = 0; j < out.shape[1]; ++j) row[j] *= scale;
    }
    ops::hadamard(s, {.x = out, .columns = true});
    s.synchronize();
}

void unrotate(Stream& s, View inner) {
    ops::hadamard(s, {.x = inner, .columns = true});
    ops::hadamard(s, {.x = inner});
    s.synchronize();
}

std::vector<double> column_rms(ConstView weight, const std::string& name) {
    const int64_t k = weight.shape[0], n = weight.shape[1];
    std::vector<double> c(static_cast<size_t>(n));
    for (int64_t i = 0; i < k; ++i) {
        const float* row = weight.row<float>(i);
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) {
            const double square = static_cast<double>(row[j]) * row[j];
            c[static_cast<size_t>(j)] += square;
            sum += square;
        }
        if (std::isfinite(sum)) continue;
        const auto bad =
            std::find_if(row, row + n, [](float v) { return !std::isfinite(v); }) - row;
        throw Error(Errc::invalid_argument, {.tensor = name},
                    fmt::format("the weight of input {} and output {} is {}; all must be finite", i,
                                bad, row[bad]));
    }
    for (double& v : c) v = std::sqrt(v / static_cast<double>(k));
    return c;
}

std::vector<double> row_rms(Stream& s, ConstView weight, const std::vector<float>& sv) {
    const int64_t k = weight.shape[0], n = weight.shape[1];
    std::vector<double> sum(static_cast<size_t>(k));
    const std::vector<float> scale = inverse(sv);
    for (int64_t begin = 0; begin < n; begin += kSlab) {
        const auto scope = s.workspace().scope();
        const View x = s.workspace().take(DType::f32, {k, std::min(kSlab, n - begin)});
        scale_columns(s, weight, scale, begin, x);
        for (int64_t i = 0; i < k; ++i) {
            const float* row = x.row<float>(i);
            for (int64_t j = 0; j < x.shape[1]; ++j)
                sum[static_cast<size_t>(i)] += static_cast<double>(row[j]) * row[j];
        }
    }
    for (double& v : sum) v = std::sqrt(v / static_cast<double>(n));
    return sum;
}

}  // namespace exl3
