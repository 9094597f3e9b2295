#include "gpu/encode_tiles.cuh"

namespace exl3::gpu::search {

template <>
Kernels kernels<8>() {
    return pick<8>();
}

}  // namespace exl3::gpu::search
