#include "gpu/norms.cuh"
#include "ops/norm.h"

namespace exl3::gpu {
namespace {

/// Rows take turns at the rows of the weight.
struct RowWeights {
    Floats values;
    int64_t rows = 1, stride = 0;
};

__global__ void rms_rows(const float* x, int64_t x_stride, RowWeights weight, float* y,
                         int64_t y_stride, int64_t rows, int64_t dim, float eps,
                         float weight_bias) {
    __shared__ float room[kWarp];
    wait_for_predecessor();
    let_successor_start();
    const RowTeam team(dim);
    if (team.row >= rows) return;  // whole warps only
    const float* from = x + team.row * x_stride;
    float* to = y + team.row * y_stride;
    float squares = 0;
    for (int64_t i = team.place; i < dim; i += team.size) squares += from[i] * from[i];
    const float mean = team.sum(squares, room) / static_cast<float>(dim);
    const float scale = 1.0f / sqrtf(mean + eps);
    const int64_t w = team.row % weight.rows * weight.stride;
    for (int64_t i = team.place; i < dim; i += team.size)
        to[i] = from[i] * scale * (weight.values.data ? weight.values[w + i] + weight_bias : 1.0f);
}

}  // namespace

void rms_norm(Stream& s, const RmsNormArgs& a) {
    const NormShape shape(a.x.shape[0], a.x.shape[1]);
    launch(gpu_stream(s), "rms_norm", shape.launch(), rms_rows, a.x.as<float>(), a.x.row_stride,
           RowWeights{floats(a.weight), a.weight ? a.weight.rows() : 1, a.weight.row_stride},
           a.y.as<float>(), a.y.row_stride, shape.rows, shape.dim, a.eps, a.weight_bias);
}

}  // namespace exl3::gpu
