#pragma once
#include <algorithm>

#include "gpu/launch.h"
#include "gpu/numbers.cuh"
#include "ops/activation.h"

namespace exl3::gpu {

/// erfc(-x / sqrt 2) = 1 + erf(x / sqrt 2). Far out a rounded argument would cost many digits, so
/// what rounding left over comes in with the derivative.
__device__ __forceinline__ float erfc_of_scaled(float x) {
    constexpr float kHigh = -0.70710678f, kLow = -1.21e-8f;  // -1 / sqrt 2
    const float z = kHigh * x, rest = fmaf(kHigh, x, -z) + kLow * x;
    return erfcf(z) - rest * 1.12837917f * expf(-z * z);
}

/// act(x), as ops/activation.h defines it; oai without its + 1.
__device__ __forceinline__ float activate(float x, Act act, const Xielu& xielu = {}) {
    switch (act) {
        case Act::silu: return x / (1 + expf(-x));
        case Act::gelu: return 0.5f * x * erfc_of_scaled(x);
        // 1 + tanh z = 2 / (1 + e^-2z), without the cancellation at negative z.
        case Act::gelu_tanh:
            return x / (1 + expf(-2 * 0.7978845608f * (x + 0.044715f * x * x * x)));
        case Act::relu2: return x > 0 ? x * x : 0;
        case Act::xielu:
            return xielu.beta * x + (x > 0 ? xielu.positive * x * x
                                           : xielu.negative * (expm1f(fminf(x, xielu.eps)) - x));
        case Act::oai: return x / (1 + expf(-1.702f * x));
    }
    return 0;
}

/// One thread per element of (rows, dim): blocks along a row, and rows along the grid's y.
inline Launch elementwise(int64_t rows, int64_t dim) {
    return {dim3(blocks_for(dim, 256), static_cast<unsigned>(std::min<int64_t>(rows, 65535))),
            dim3(256)};
}

}  // namespace exl3::gpu
