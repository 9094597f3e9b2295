#pragma once
#include <algorithm>

#include "gpu/launch.h"
#include "gpu/numbers.cuh"
#include "ops/activation.h"

namespace exl3::gpu {

/// act(x), as ops/activation.h defines it; oai without its + 1.
__device__ __forceinline__ float activate(float x, Act act, const Xielu& xielu = {}) {
    switch (act) {
        case Act::silu: return x / (1 + expf(-x));
        // 1 + erf t = erfc -t, without the cancellation at negative t.
        case Act::gelu: return 0.5f * x * erfcf(-0.70710678f * x);
        case Act::gelu_tanh:
            return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
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
