#include "quant/tiles.h"

#include <algorithm>
#include <numeric>
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

std::vector<float> sample_tiles(const std::vector<float>& matrix, int64_t k, int64_t n) {
    const int64_t rows = k / kTile, cols = n / kTile, all = rows * cols;
    std::vector<double> norm(static_cast<size_t>(all));
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) {
            const double v = matrix[static_cast<size_t>(i * n + j)];
            norm[static_cast<size_t>(i / kTile * cols + j / kTile)] += v * v;
        }
    std::vector<int64_t> order(static_cast<size_t>(all)), chosen;
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return norm[static_cast<size_t>(a)] < norm[static_cast<size_t>(b)];
    });
    const int64_t steps = std::min<int64_t>(std::max(rows, cols), 128);
    for (int64_t i = 0; i < steps; ++i)
        for (int64_t w = 0; w < 3; ++w) chosen.push_back(i % rows * cols + (i + w) % cols);
    const int64_t extremes = std::min(std::max<int64_t>(8, steps / 8), all / 2);
    chosen.insert(chosen.end(), order.begin(), order.begin() + extremes);
    chosen.insert(chosen.end(), order.end() - extremes, order.end());

    std::vector<float> out(chosen.size() * kTileSize);
    for (size_t c = 0; c < chosen.size(); ++c)
        for (int p = 0; p < kTileSize; ++p)
            out[c * kTileSize + static_cast<size_t>(p)] =
                matrix[static_cast<size_t>((chosen[c] / cols * kTile + tile_row(p)) * n +
                                           chosen[c] % cols * kTile + tile_col(p))];
    return out;
}

void pack_tiles(const std::vector<uint16_t>& states, int bits, std::vector<uint16_t>& words) {
    const size_t tiles = states.size() / kTileSize, each = static_cast<size_t>(tile_words(bits));
    for (size_t t = 0; t < tiles; ++t)
        pack_states(std::span<const uint16_t, kTileSize>(states.data() + t * kTileSize, kTileSize),
                    std::span(words).subspan(t * each, each), bits);
}

}  // namespace exl3
