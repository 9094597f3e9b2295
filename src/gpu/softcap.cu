#include "gpu/elementwise.cuh"

namespace exl3::gpu {
namespace {

__global__ void cap_rows(float* x, int64_t stride, int64_t rows, int64_t dim, float cap) {
    wait_for_predecessor();
    let_successor_start();
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= dim) return;
    for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
        float& v = x[r * stride + i];
        v = cap * tanhf(v / cap);
    }
}

}  // namespace

void softcap(Stream& s, const SoftcapArgs& a) {
    const int64_t rows = a.x.shape[0], dim = a.x.shape[1];
    launch(gpu_stream(s), "softcap", elementwise(rows, dim), cap_rows, a.x.as<float>(),
           a.x.row_stride, rows, dim, a.cap);
}

}  // namespace exl3::gpu
