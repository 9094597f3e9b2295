#include "gpu/encode_tiles.cuh"

namespace exl3::gpu::search {

template <>
Kernels kernels<2>() {
    return pick<2>();
}

}  // namespace exl3::gpu::search
