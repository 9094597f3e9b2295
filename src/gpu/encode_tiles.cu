#include <algorithm>
#include <array>
#include <string>

#include "gpu/encode_tiles.cuh"
#include "gpu/launch.h"
#include "ops/encode.h"

namespace exl3::gpu {
namespace {

using namespace search;  // NOLINT

// Rows of costs that are held at a time. The more tiles a launch has, the less weighs the walk
// back, which takes the same time for few tiles and for many.
constexpr int64_t kMostRowBytes = int64_t{4} << 30;

int64_t row_bytes() {
    size_t free = 0, total = 0;
    require(cudaMemGetInfo(&free, &total), "free memory");
    return std::min<int64_t>(kMostRowBytes, static_cast<int64_t>(total / 16));
}

Kernels kernels_for(int bits) {
    constexpr std::array kByBits = {kernels<1>, kernels<2>, kernels<3>, kernels<4>,
                                    kernels<5>, kernels<6>, kernels<7>, kernels<8>};
    return kByBits[static_cast<size_t>(bits - 1)]();
}

void require_shared(size_t bytes) {
    cudaDeviceProp p{};
    int device = 0;
    require(cudaGetDevice(&device), "current GPU");
    require(cudaGetDeviceProperties(&p, device), "properties of the GPU");
    if (bytes > p.sharedMemPerBlockOptin)
        throw Error(Errc::unsupported, {},
                    "encode_tiles at 1 and 2 bits needs " + std::to_string(bytes) +
                        " bytes of shared memory per thread block, this GPU has " +
                        std::to_string(p.sharedMemPerBlockOptin) + "; use --device cpu");
}

}  // namespace

void encode_tiles(Stream& s, const EncodeTilesArgs& a) {
    const int64_t tiles = a.target.shape[0];
    if (tiles == 0) return;
    EXL3_CHECK(a.target.row_stride == kTileSize && a.states.row_stride == kTileSize &&
               (!a.values || a.values.row_stride == kTileSize));
    GpuStream& g = gpu_stream(s);
    const Kernels kernels = kernels_for(a.bits);
    const int64_t tile_halves = int64_t{stored_rows(a.bits)} * edges(a.bits);
    const int wave = g.multiprocessors() * together(a.bits);
    const int64_t waves = std::max<int64_t>(row_bytes() / (tile_halves * 2) / wave, 1);
    const int64_t most = std::min(tiles, waves * wave);
    const auto scope = s.workspace().scope();
    const View rows = s.workspace().take(DType::f16, {most, tile_halves});
    const View crossing = s.workspace().take(DType::i32, {most});
    require_shared(kernels.shared);
    allow_shared(kernels.forward, kernels.shared);
    for (int64_t first = 0; first < tiles; first += most) {
        Args args{.target = a.target.row<float>(first),
                  .tiles = static_cast<int>(std::min(most, tiles - first)),
                  .rows = rows.as<__half>(),
                  .crossing = crossing.as<int32_t>(),
                  .kind = a.codebook.kind,
                  .multiplier = a.codebook.multiplier,
                  .states = a.states.row<uint16_t>(first),
                  .values = a.values ? a.values.row<float>(first) : nullptr};
        for (const bool free : {true, false}) {
            args.free = free;
            launch(g, "encode_tiles",
                   {dim3(blocks_for(args.tiles, together(a.bits))), dim3(kThreads), kernels.shared},
                   kernels.forward, args);
            launch(g, "encode_tiles",
                   {dim3(blocks_for(args.tiles, kTraceWarps)), dim3(kTraceWarps * kWarp)},
                   kernels.backward, args);
        }
    }
}

}  // namespace exl3::gpu
