// Stored trellis words to run order (gpu/exl3_runs.cuh) on their way into device memory.
#include <algorithm>

#include "gpu/exl3_runs.cuh"
#include "gpu/launch.h"
#include "ops/exl3.h"
#include "trellis/tile.h"

namespace exl3::gpu {
namespace {

// One thread per word of the result. `stored` holds tile rows from `first_row` on.
__global__ void to_runs(const uint32_t* stored, uint32_t* packed, int k_blocks, int first_block,
                        int blocks, int tiles_out, int bits, int64_t words) {
    wait_for_predecessor();
    let_successor_start();
    const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= words) return;
    const int64_t unit = at / unit_words(bits);
    const int in_unit = static_cast<int>(at % unit_words(bits));
    const int lane = in_unit / 4 % kWarp, i = in_unit / 128 * 4 + in_unit % 4;
    const int run = i / bits, half = run / 2, tile = run % 2;
    const int64_t block = unit / kUnitsPerBlock, group = block / blocks, k = block % blocks;
    const int64_t row = k * 8 + half * 4 + lane % 4;
    const int64_t col = group * 8 + unit % kUnitsPerBlock * 2 + tile;
    const int64_t target = (group * k_blocks + first_block + k) * kUnitsPerBlock;
    packed[(target + unit % kUnitsPerBlock) * unit_words(bits) + in_unit] =
        stored[(row * tiles_out + col) * 8 * bits + lane / 4 * bits + i % bits];
}

// Scratch that stored words pass through; larger matrices go in pieces.
constexpr int64_t kPieceBytes = int64_t{64} << 20;

}  // namespace

void exl3_repack(Stream& s, const Exl3RepackArgs& a) {
    GpuStream& g = gpu_stream(s);
    const int64_t tiles_in = a.trellis.shape[0], tiles_out = a.trellis.shape[1];
    const int64_t k_blocks = tiles_in / 8, block_bytes = 8 * tiles_out * tile_words(a.bits) * 2;
    const int64_t most = std::clamp<int64_t>(kPieceBytes / block_bytes, 1, k_blocks);
    const auto scope = s.workspace().scope();
    const View stored = s.workspace().take(DType::u8, {most * block_bytes});
    for (int64_t first = 0; first < k_blocks; first += most) {
        const int64_t blocks = std::min(most, k_blocks - first), bytes = blocks * block_bytes;
        // Host bytes of any alignment become aligned words here.
        View piece = stored;
        piece.shape = {bytes};
        s.copy(dense(a.trellis.as<char>() + first * block_bytes, DType::u8, {bytes}), piece);
        const int64_t words = bytes / 4;
        launch(g, "exl3_repack", {dim3(blocks_for(words, 256)), dim3(256)}, to_runs,
               stored.as<uint32_t>(), a.packed.as<uint32_t>(), static_cast<int>(k_blocks),
               static_cast<int>(first), static_cast<int>(blocks), static_cast<int>(tiles_out),
               a.bits, words);
    }
}

}  // namespace exl3::gpu
