#include "gpu/elementwise.cuh"

namespace exl3::gpu {
namespace {

__global__ void gate_rows(const float* gate, int64_t gate_stride, const float* up,
                          int64_t up_stride, float* y, int64_t y_stride, int64_t rows, int64_t dim,
                          Act act) {
    wait_for_predecessor();
    let_successor_start();
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= dim) return;
    for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
        const float v = activate(gate[r * gate_stride + i], act);
        y[r * y_stride + i] = up ? v * up[r * up_stride + i] : v;
    }
}

}  // namespace

void gated_act(Stream& s, const GatedActArgs& a) {
    const int64_t rows = a.y.shape[0], dim = a.y.shape[1];
    launch(gpu_stream(s), "gated_act", elementwise(rows, dim), gate_rows, a.gate.as<float>(),
           a.gate.row_stride, a.up.as<float>(), a.up.row_stride, a.y.as<float>(), a.y.row_stride,
           rows, dim, a.act);
}

}  // namespace exl3::gpu
