#include "trellis/tile.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace exl3 {
namespace {

// Stream bit t stands in 32-bit word t / 32 at bit 31 - t % 32. As 16-bit halves, little-endian,
// that is half (t / 16) ^ 1 at bit 15 - t % 16.
uint32_t stream_half(std::span<const uint16_t> words, int half) {
    return words[static_cast<size_t>(half ^ 1)];
}

}  // namespace

void unpack_states(std::span<const uint16_t> words, std::span<uint16_t, kTileSize> states,
                   int bits) {
    EXL3_CHECK(bits >= 1 && bits <= 8 && words.size() == static_cast<size_t>(tile_words(bits)));
    const int halves = tile_words(bits);
    for (int p = 0; p < kTileSize; ++p) {
        // The state is the 16 stream bits that end before bit (p + 1) * bits.
        const int end = (p + 1) * bits;
        const int last = (end - 1) / 16, shift = (last + 1) * 16 - end;
        const uint32_t pair =
            stream_half(words, (last + halves - 1) % halves) << 16 | stream_half(words, last);
        states[p] = static_cast<uint16_t>(pair >> shift);
    }
}

void pack_states(std::span<const uint16_t, kTileSize> states, std::span<uint16_t> words, int bits) {
    EXL3_CHECK(bits >= 1 && bits <= 8 && words.size() == static_cast<size_t>(tile_words(bits)));
    std::fill(words.begin(), words.end(), uint16_t{0});
    for (int p = 0; p < kTileSize; ++p)
        for (int b = 0; b < bits; ++b) {
            const int t = p * bits + b;
            const int bit = (states[p] >> (bits - 1 - b)) & 1;
            words[static_cast<size_t>((t / 16) ^ 1)] |= static_cast<uint16_t>(bit << (15 - t % 16));
        }
}

void unpack_tile(std::span<const uint16_t> words, std::span<f16, kTileSize> tile, int bits,
                 Codebook codebook) {
    std::array<uint16_t, kTileSize> states{};
    unpack_states(words, states, bits);
    for (int p = 0; p < kTileSize; ++p)
        tile[tile_row(p) * kTile + tile_col(p)] = decode_state(states[p], codebook);
}

}  // namespace exl3
