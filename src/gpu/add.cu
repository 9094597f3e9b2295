#include "gpu/elementwise.cuh"

namespace exl3::gpu {
namespace {

__global__ void add_rows(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows,
                         int64_t dim, float scale) {
    wait_for_predecessor();
    let_successor_start();
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= dim) return;
    for (int64_t r = blockIdx.y; r < rows; r += gridDim.y)
        y[r * y_stride + i] += x[r * x_stride + i] * scale;
}

}  // namespace

void add(Stream& s, const AddArgs& a) {
    const int64_t rows = a.y.shape[0], dim = a.y.shape[1];
    launch(gpu_stream(s), "add", elementwise(rows, dim), add_rows, a.x.as<float>(), a.x.row_stride,
           a.y.as<float>(), a.y.row_stride, rows, dim, a.scale);
}

}  // namespace exl3::gpu
