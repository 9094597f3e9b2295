#include "gpu/encode_tiles.cuh"

namespace exl3::gpu::search {

template <>
Kernels kernels<5>() {
    return pick<5>();
}

}  // namespace exl3::gpu::search
