#include "gpu/encode_tiles.cuh"

namespace exl3::gpu::search {

template <>
Kernels kernels<4>() {
    return pick<4>();
}

}  // namespace exl3::gpu::search
