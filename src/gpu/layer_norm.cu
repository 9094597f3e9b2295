#include "gpu/norms.cuh"
#include "ops/norm.h"

namespace exl3::gpu {
namespace {

struct Affine {
    Floats weight, bias;
    int64_t weight_rows = 1, weight_stride = 0;
};

__global__ void layer_rows(const float* x, int64_t x_stride, Affine affine, float* y,
                           int64_t y_stride, int64_t rows, int64_t dim, float eps) {
    __shared__ float room[kWarp];
    wait_for_predecessor();
    let_successor_start();
    const RowTeam team(dim);
    if (team.row >= rows) return;  // whole warps only
    const float* from = x + team.row * x_stride;
    float* to = y + team.row * y_stride;
    float sum = 0;
    for (int64_t i = team.place; i < dim; i += team.size) sum += from[i];
    const float mean = team.sum(sum, room) / static_cast<float>(dim);
    float squares = 0;
    for (int64_t i = team.place; i < dim; i += team.size)
        squares += (from[i] - mean) * (from[i] - mean);
    const float scale = 1.0f / sqrtf(team.sum(squares, room) / static_cast<float>(dim) + eps);
    const int64_t w = team.row % affine.weight_rows * affine.weight_stride;
    for (int64_t i = team.place; i < dim; i += team.size)
        to[i] = (from[i] - mean) * scale * affine.weight[w + i] +
                (affine.bias.data ? affine.bias[i] : 0.0f);
}

}  // namespace

void layer_norm(Stream& s, const LayerNormArgs& a) {
    const NormShape shape(a.x.shape[0], a.x.shape[1]);
    const Affine affine{floats(a.weight), floats(a.bias), a.weight.rows(), a.weight.row_stride};
    launch(gpu_stream(s), "layer_norm", shape.launch(), layer_rows, a.x.as<float>(), a.x.row_stride,
           affine, a.y.as<float>(), a.y.row_stride, shape.rows, shape.dim, a.eps);
}

}  // namespace exl3::gpu
