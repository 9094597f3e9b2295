#include <gtest/gtest.h>

#include <array>
#include <set>

#include "base/random.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

uint32_t crc32(const std::vector<f16>& table) {
    uint32_t crc = 0xffffffffu;
    for (const f16 h : table)
        for (const uint8_t byte :
             {static_cast<uint8_t>(h.bits), static_cast<uint8_t>(h.bits >> 8)}) {
            crc ^= byte;
            for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
        }
    return ~crc;
}

TEST(Codebook, TablesHaveTheKnownChecksums) {
    EXPECT_EQ(crc32(codebook_table(kThreeInst)), 0x4c83d524u);
    EXPECT_EQ(crc32(codebook_table(kMcg)), 0xd2d13c52u);
    EXPECT_EQ(crc32(codebook_table(kMul1)), 0x2bdf05c5u);
}

TEST(Tile, PositionsCoverTheTileOnce) {
    std::set<std::pair<int, int>> seen;
    for (int p = 0; p < kTileSize; ++p) seen.insert({tile_row(p), tile_col(p)});
    EXPECT_EQ(seen.size(), static_cast<size_t>(kTileSize));
}

TEST(Tile, PackingIsTheInverseOfUnpackingForAnyBits) {
    Random random(7);
    for (int bits = 1; bits <= 8; ++bits)
        for (int trial = 0; trial < 20; ++trial) {
            std::vector<uint16_t> words(static_cast<size_t>(tile_words(bits))), again(words.size());
            for (auto& w : words) w = static_cast<uint16_t>(random.next());
            std::array<uint16_t, kTileSize> states{};
            unpack_states(words, states, bits);
            for (int p = 0; p < kTileSize; ++p)
                ASSERT_EQ(states[p] >> bits, states[(p + 255) % 256] & ((1 << (16 - bits)) - 1))
                    << "the ring is open at " << p;
            pack_states(states, again, bits);
            ASSERT_EQ(words, again) << bits;
        }
}

TEST(Hadamard, IsItsOwnInverseAndKeepsLength) {
    Random random(3);
    std::array<double, kHadamard> x{}, y{};
    double before = 0, after = 0;
    for (int i = 0; i < kHadamard; ++i) before += (x[i] = random.normal()) * x[i];
    y = x;
    hadamard128(y.data());
    for (const double v : y) after += v * v;
    EXPECT_NEAR(after / before, 1, 1e-12);
    hadamard128(y.data());
    for (int i = 0; i < kHadamard; ++i) EXPECT_NEAR(x[i], y[i], 1e-12);
}

}  // namespace
}  // namespace exl3
