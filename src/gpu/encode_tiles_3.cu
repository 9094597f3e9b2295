#include "gpu/encode_tiles.cuh"

namespace exl3::gpu::search {

template <>
Kernels kernels<3>() {
    return pick<3>();
}

}  // namespace exl3::gpu::search
