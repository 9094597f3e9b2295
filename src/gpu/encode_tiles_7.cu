#include "gpu/encode_tiles.cuh"

namespace exl3::gpu::search {

template <>
Kernels kernels<7>() {
    return pick<7>();
}

}  // namespace exl3::gpu::search
