#pragma once
#include <cstdint>
#include <span>

#include "trellis/codebook.h"

namespace exl3 {

/// A tile is 16 input channels by 16 output channels of the inner matrix, coded as a closed ring
/// of 256 symbols of `bits` bits (docs/format.md "Tiles").
inline constexpr int kTile = 16;
inline constexpr int kTileSize = kTile * kTile;

/// Row (input channel) of trellis position p, 0..255.
constexpr int tile_row(int p) {
    const int lane = p / 8, q = p % 8;
    return 2 * (lane % 4) + q % 2 + 8 * ((q / 2) % 2);
}
/// Column (output channel) of trellis position p, 0..255.
constexpr int tile_col(int p) {
    return p / 8 / 4 + 8 * ((p % 8) / 4);
}

/// u16 words that one tile takes on disk.
constexpr int tile_words(int bits) {
    return 16 * bits;
}

/// The 16-bit states of a tile from its stored words.
/// @param words   (16 * bits) u16 as stored
/// @param states  (256) in trellis order, overwritten
/// @param bits    1 to 8; anything else is a caller's bug
void unpack_states(std::span<const uint16_t> words, std::span<uint16_t, kTileSize> states,
                   int bits);

/// The inverse: stores the low `bits` bits of every state. States must close the ring, that is
/// states[p] == (states[p-1] << bits | symbol) mod 2^16, circularly.
void pack_states(std::span<const uint16_t, kTileSize> states, std::span<uint16_t> words, int bits);

/// Unpacks one tile into half precision.
/// @param tile  (16, 16) f16, row-major (row = input channel), overwritten
void unpack_tile(std::span<const uint16_t> words, std::span<f16, kTileSize> tile, int bits,
                 Codebook codebook);

}  // namespace exl3
