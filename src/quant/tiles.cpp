#include "quant/tiles.h"

#include <span>

#include "trellis/tile.h"

namespace exl3 {

void gather_tiles(const float* rows, int64_t tiles, float* out) {
    const int64_t n = tiles * kTile;
    for (int64_t t = 0; t < tiles; ++t)
        for (int p = 0; p < kTileSize; ++p)
            out[t * kTileSize + p] = rows[tile_row(p) * n + t * kTile + tile_col(p)];
}

void scatter_tiles(const float* tiles_in, int64_t tiles, float* rows) {
    const int64_t n = tiles * kTile;
    for (int64_t t = 0; t < tiles; ++t)
        for (int p = 0; p < kTileSize; ++p)
            rows[tile_row(p) * n + t * kTile + tile_col(p)] = tiles_in[t * kTileSize + p];
}

void pack_tiles(const std::vector<uint16_t>& states, int bits, std::vector<uint16_t>& words) {
    const size_t tiles = states.size() / kTileSize, each = static_cast<size_t>(tile_words(bits));
    for (size_t t = 0; t < tiles; ++t)
        pack_states(std::span<const uint16_t, kTileSize>(states.data() + t * kTileSize, kTileSize),
                    std::span(words).subspan(t * each, each), bits);
}

}  // namespace exl3
