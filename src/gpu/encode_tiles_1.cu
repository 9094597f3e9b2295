#include "gpu/encode_tiles.cuh"

namespace exl3::gpu::search {

template <>
Kernels kernels<1>() {
    return pick<1>();
}

}  // namespace exl3::gpu::search
