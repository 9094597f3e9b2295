#define EXL3_ISA_FILE "cpu/layer_norm.cpp"
#include "cpu/isa.h"

#include "core/load.h"
#include "ops/norm.h"

EXL3_ISA_BEGIN

inline float row_sum(const float* x, int64_t dim, float mean, bool squared) {
    F32 acc = F32::set(0);
    int64_t i = 0;
    for (; i + F32::width <= dim; i += F32::width) {
        const F32 v = F32::load(x + i) - F32::set(mean);
        acc = squared ? fma(v, v, acc) : acc + v;
    }
    float total = sum(acc);
    for (; i < dim; ++i) total += squared ? (x[i] - mean) * (x[i] - mean) : x[i] - mean;
    return total;
}

void layer_norm_rows(const LayerNormArgs& a, int64_t begin, int64_t end) {
    const int64_t dim = a.x.shape[1], weights = a.weight.rows();
    const auto n = static_cast<float>(dim);
    for (int64_t r = begin; r < end; ++r) {
        const float* x = a.x.row<float>(r);
        float* y = a.y.row<float>(r);
        const float mean = row_sum(x, dim, 0, false) / n;
        const float scale = 1.0f / std::sqrt(row_sum(x, dim, mean, true) / n + a.eps);
        for (int64_t i = 0; i < dim; ++i) {
            const float bias = a.bias ? load_f32(a.bias, 0, i) : 0;
            y[i] = (x[i] - mean) * scale * load_f32(a.weight, r % weights, i) + bias;
        }
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void layer_norm(Stream& s, const LayerNormArgs& a) {
    const auto rows = EXL3_ISA_PICK(s, layer_norm_rows);
    const int64_t grain = 16384 / a.x.shape[1] + 1;
    pool_of(s).parallel_for(a.x.shape[0], grain, [&](int64_t b, int64_t e) { rows(a, b, e); });
}

}  // namespace exl3::cpu
#endif
