#define EXL3_ISA_FILE "cpu/rms_norm.cpp"
#include "cpu/isa.h"

#include "ops/norm.h"

EXL3_ISA_BEGIN

template <typename W>
void rms_norm_row(const float* x, const W* w, float* y, int64_t dim, float eps, float bias) {
    F32 acc = F32::set(0);
    int64_t i = 0;
    for (; i + F32::width <= dim; i += F32::width) {
        const F32 v = F32::load(x + i);
        acc = fma(v, v, acc);
    }
    float total = sum(acc);
    for (; i < dim; ++i) total += x[i] * x[i];

    const float scale = 1.0f / std::sqrt(total / static_cast<float>(dim) + eps);
    const auto weight_at = [&](int64_t j) {
        if constexpr (sizeof(W) == sizeof(float))
            return w[j];
        else
            return to_float(w[j]);
    };
    i = 0;
    if (w) {
        for (; i + F32::width <= dim; i += F32::width) {
            const F32 v = F32::load(x + i) * F32::set(scale);
            (v * (F32::load(w + i) + F32::set(bias))).store(y + i);
        }
        for (; i < dim; ++i) y[i] = x[i] * scale * (weight_at(i) + bias);
    } else {
        for (; i < dim; ++i) y[i] = x[i] * scale;
    }
}

template <typename W>
const W* rms_norm_weight(const RmsNormArgs& a, int64_t r) {
    return a.weight.shape.rank == 2 ? a.weight.row<W>(r % a.weight.shape[0]) : a.weight.as<W>();
}

void rms_norm_rows(const RmsNormArgs& a, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
        const float* x = a.x.row<float>(r);
        float* y = a.y.row<float>(r);
        const int64_t dim = a.x.shape[1];
        if (a.weight.dtype == DType::f32)
            rms_norm_row(x, rms_norm_weight<float>(a, r), y, dim, a.eps, a.weight_bias);
        else if (a.weight.dtype == DType::f16)
            rms_norm_row(x, rms_norm_weight<f16>(a, r), y, dim, a.eps, a.weight_bias);
        else
            rms_norm_row(x, rms_norm_weight<bf16>(a, r), y, dim, a.eps, a.weight_bias);
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void rms_norm(Stream& s, const RmsNormArgs& a) {
    const auto rows = EXL3_ISA_PICK(s, rms_norm_rows);
    const int64_t grain = 16384 / a.x.shape[1] + 1;
    pool_of(s).parallel_for(a.x.shape[0], grain, [&](int64_t b, int64_t e) { rows(a, b, e); });
}

}  // namespace exl3::cpu
#endif
