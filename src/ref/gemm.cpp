#include "ops/gemm.h"
#include "core/device.h"

namespace exl3::ref {

void gemm(Stream&, const GemmArgs& a) {
    const int64_t depth = a.a.shape[a.transpose_a ? 0 : 1];
    for (int64_t i = 0; i < a.c.shape[0]; ++i)
        for (int64_t j = 0; j < (a.lower ? i + 1 : a.c.shape[1]); ++j) {
            double sum = 0;
            for (int64_t d = 0; d < depth; ++d) {
                const double x = a.transpose_a ? a.a.row<float>(d)[i] : a.a.row<float>(i)[d];
                sum += x * (a.transpose_b ? a.b.row<float>(j)[d] : a.b.row<float>(d)[j]);
            }
            float& c = a.c.row<float>(i)[j];
            c = static_cast<float>(a.alpha * sum + (a.beta == 0 ? 0.0 : a.beta * c));
        }
}

}  // namespace exl3::ref
