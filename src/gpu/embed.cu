#include "ops/embed.h"

#include "gpu/launch.h"
#include "gpu/numbers.cuh"

namespace exl3::gpu {
namespace {

__global__ void embed_rows(const int32_t* tokens, Floats table, int64_t table_stride, float* y,
                           int64_t y_stride, int64_t dim, float scale) {
    wait_for_predecessor();
    let_successor_start();
    const int64_t from = tokens[blockIdx.x] * table_stride;
    float* out = y + blockIdx.x * y_stride;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) out[i] = table[from + i] * scale;
}

}  // namespace

void embed(Stream& s, const EmbedArgs& a) {
    launch(gpu_stream(s), "embed", {dim3(static_cast<unsigned>(a.y.shape[0])), dim3(256)},
           embed_rows, a.tokens.as<int32_t>(), floats(a.table), a.table.row_stride, a.y.as<float>(),
           a.y.row_stride, a.y.shape[1], a.scale);
}

}  // namespace exl3::gpu
