#include "gpu/encode_tiles.cuh"

namespace exl3::gpu::search {

template <>
Kernels kernels<6>() {
    return pick<6>();
}

}  // namespace exl3::gpu::search
