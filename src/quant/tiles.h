#pragma once
#include <cstdint>
#include <vector>

namespace exl3 {

/// 16 rows of a (16, 16 * tiles) matrix as tiles in trellis order, (tiles, 256), and back.
void gather_tiles(const float* rows, int64_t tiles, float* out);
void scatter_tiles(const float* tiles_in, int64_t tiles, float* rows);

/// States (tiles, 256) as stored words, (tiles, 16 * bits).
void pack_tiles(const std::vector<uint16_t>& states, int bits, std::vector<uint16_t>& words);

}  // namespace exl3
