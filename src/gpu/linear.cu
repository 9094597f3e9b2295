#include "ops/linear.h"

#include "gpu/tile_product.cuh"

namespace exl3::gpu {
namespace {

constexpr int kWarps = 8;     // of a block, a column each
constexpr int kAtOnce = 4;    // rows of x that share a read of the weights
constexpr int kFewRows = 16;  // up to here reading the weights is the work

/// Eight weights from a place that 16-byte loads may read.
template <DType kType>
__device__ void load8(const void* weights, int64_t at, float (&w)[8]) {
    if constexpr (kType == DType::f32) {
        const auto* p = reinterpret_cast<const float4*>(static_cast<const float*>(weights) + at);
        const float4 a = __ldg(p), b = __ldg(p + 1);
        w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w;
        w[4] = b.x, w[5] = b.y, w[6] = b.z, w[7] = b.w;
    } else {
        const uint4 v =
            __ldg(reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(weights) + at));
        const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if constexpr (kType == DType::bf16) {
                w[2 * i] = __uint_as_float(words[i] << 16);
                w[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
            } else {
                w[2 * i] = __half2float(__ushort_as_half(static_cast<unsigned short>(words[i])));
                w[2 * i + 1] =
                    __half2float(__ushort_as_half(static_cast<unsigned short>(words[i] >> 16)));
            }
        }
    }
}

struct FewRows {
    const float* x = nullptr;
    int64_t x_stride = 0;
    Floats weight;
    int64_t weight_stride = 0;
    Floats bias;
    float* y = nullptr;
    int64_t y_stride = 0, rows = 0, in = 0, out = 0;
    int64_t wide = 0;  ///< inputs that are read eight at a time
};

// A warp per output channel. The order of a row's sum does not depend on how many rows there are.
template <DType kType>
__global__ void __launch_bounds__(kWarps* kWarp) few_rows(FewRows p) {
    wait_for_predecessor();
    let_successor_start();
    const int lane = threadIdx.x % kWarp;
    const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (column >= p.out) return;
    const int64_t weights = column * p.weight_stride;
    for (int64_t r0 = 0; r0 < p.rows; r0 += kAtOnce) {
        float sum[kAtOnce] = {};
#pragma unroll 2
        for (int64_t i = lane * 8; i < p.wide; i += kWarp * 8) {
            float w[8];
            load8<kType>(p.weight.data, weights + i, w);
#pragma unroll
            for (int r = 0; r < kAtOnce; ++r) {
                if (r0 + r >= p.rows) break;
                const float* x = p.x + (r0 + r) * p.x_stride + i;
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[r] = fmaf(w[j], x[j], sum[r]);
            }
        }
        for (int64_t i = p.wide + lane; i < p.in; i += kWarp) {
            const float w = p.weight[weights + i];
#pragma unroll
            for (int r = 0; r < kAtOnce; ++r)
                if (r0 + r < p.rows) sum[r] = fmaf(w, p.x[(r0 + r) * p.x_stride + i], sum[r]);
        }
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) {
            const float total = warp_sum(sum[r]);
            if (lane == 0 && r0 + r < p.rows)
                p.y[(r0 + r) * p.y_stride + column] = total + (p.bias.data ? p.bias[column] : 0.0f);
        }
    }
}

}  // namespace

void linear(Stream& stream, const LinearArgs& a) {
    GpuStream& s = gpu_stream(stream);
    if (a.x.shape[0] > kFewRows) {
        tile_product(s, "linear",
                     {.a = {floats(a.x), a.x.row_stride},
                      .b = {floats(a.weight), a.weight.row_stride},
                      .c = a.y.as<float>(),
                      .c_stride = a.y.row_stride,
                      .m = a.y.shape[0],
                      .n = a.y.shape[1],
                      .depth = a.x.shape[1],
                      .bias = floats(a.bias)});
        return;
    }
    const size_t element = size_of(a.weight.dtype);
    const bool aligned = reinterpret_cast<uintptr_t>(a.weight.data) % 16 == 0 &&
                         static_cast<size_t>(a.weight.row_stride) * element % 16 == 0;
    const FewRows p{.x = a.x.as<float>(),
                    .x_stride = a.x.row_stride,
                    .weight = floats(a.weight),
                    .weight_stride = a.weight.row_stride,
                    .bias = floats(a.bias),
                    .y = a.y.as<float>(),
                    .y_stride = a.y.row_stride,
                    .rows = a.x.shape[0],
                    .in = a.x.shape[1],
                    .out = a.y.shape[1],
                    .wide = aligned ? a.x.shape[1] / 8 * 8 : 0};
    const Launch how{dim3(blocks_for(p.out, kWarps)), dim3(kWarps * kWarp)};
    switch (a.weight.dtype) {
        case DType::f32: launch(s, "linear", how, few_rows<DType::f32>, p); break;
        case DType::f16: launch(s, "linear", how, few_rows<DType::f16>, p); break;
        default: launch(s, "linear", how, few_rows<DType::bf16>, p); break;
    }
}

}  // namespace exl3::gpu
