#include "gpu/elementwise.cuh"

namespace exl3::gpu {
namespace {

struct Gate {
    Act act;
    float limit;  ///< infinite: none
    ActClamp clamp;
    Xielu xielu;
};

__global__ void gate_rows(const float* gate, int64_t gate_stride, const float* up,
                          int64_t up_stride, float* y, int64_t y_stride, int64_t rows, int64_t dim,
                          Gate g) {
    wait_for_predecessor();
    let_successor_start();
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= dim) return;
    const bool before = g.clamp == ActClamp::before;
    for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
        const float x = gate[r * gate_stride + i];
        float v = activate(before && x > g.limit ? g.limit : x, g.act, g.xielu);
        if (!before && v > g.limit) v = g.limit;
        float factor = 1;
        if (up) {
            const float u = up[r * up_stride + i];
            factor = u > g.limit ? g.limit : u < -g.limit ? -g.limit : u;
        }
        if (g.act == Act::oai) factor += 1;
        y[r * y_stride + i] = v * factor;
    }
}

}  // namespace

void gated_act(Stream& s, const GatedActArgs& a) {
    const int64_t rows = a.y.shape[0], dim = a.y.shape[1];
    launch(gpu_stream(s), "gated_act", elementwise(rows, dim), gate_rows, a.gate.as<float>(),
           a.gate.row_stride, a.up.as<float>(), a.up.row_stride, a.y.as<float>(), a.y.row_stride,
           rows, dim, Gate{a.act, a.limit > 0 ? a.limit : INFINITY, a.clamp, a.xielu});
}

}  // namespace exl3::gpu
