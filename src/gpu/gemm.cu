#include "ops/gemm.h"

#include "gpu/tile_product.cuh"

namespace exl3::gpu {

void gemm(Stream& s, const GemmArgs& a) {
    tile_product(gpu_stream(s), "gemm",
                 {.a = {floats(a.a), a.a.row_stride, a.transpose_a},
                  .b = {floats(a.b), a.b.row_stride, !a.transpose_b},
                  .c = a.c.as<float>(),
                  .c_stride = a.c.row_stride,
                  .m = a.c.shape[0],
                  .n = a.c.shape[1],
                  .depth = a.a.shape[a.transpose_a ? 0 : 1],
                  .alpha = a.alpha,
                  .beta = a.beta,
                  .lower = a.lower});
}

}  // namespace exl3::gpu
