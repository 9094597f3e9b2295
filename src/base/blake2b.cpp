#include "base/blake2b.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace exl3 {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<uint64_t, 8> kInit = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u};

// Message schedule; rounds 10 and 11 repeat 0 and 1.
constexpr uint8_t kSigma[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

}  // namespace

Blake2b128::Blake2b128() : h_(kInit) {
    h_[0] ^= 0x01010000u ^ 16u;  // fan-out and depth 1, no key, 16 bytes of digest
}

void Blake2b128::compress(bool last) {
    uint64_t m[16], v[16];
    std::memcpy(m, block_.data(), sizeof m);
    std::copy(h_.begin(), h_.end(), v);
    std::copy(kInit.begin(), kInit.end(), v + 8);
    v[12] ^= bytes_;
    if (last) v[14] = ~v[14];
    const auto mix = [&](int a, int b, int c, int d, uint64_t x, uint64_t y) {
        v[a] += v[b] + x;
        v[d] = std::rotr(v[d] ^ v[a], 32);
        v[c] += v[d];
        v[b] = std::rotr(v[b] ^ v[c], 24);
        v[a] += v[b] + y;
        v[d] = std::rotr(v[d] ^ v[a], 16);
        v[c] += v[d];
        v[b] = std::rotr(v[b] ^ v[c], 63);
    };
    for (int round = 0; round < 12; ++round) {
        const uint8_t* s = kSigma[round % 10];
        for (int i = 0; i < 4; ++i) mix(i, i + 4, i + 8, i + 12, m[s[2 * i]], m[s[2 * i + 1]]);
        for (int i = 0; i < 4; ++i)
            mix(i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12, m[s[8 + 2 * i]],
                m[s[9 + 2 * i]]);
    }
    for (size_t i = 0; i < 8; ++i) h_[i] ^= v[i] ^ v[i + 8];
}

void Blake2b128::update(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        // The last block is compressed by finish(), so a full one waits until more comes.
        if (used_ == block_.size()) {
            bytes_ += used_;
            compress(false);
            used_ = 0;
        }
        const size_t n = std::min(bytes.size(), block_.size() - used_);
        std::memcpy(block_.data() + used_, bytes.data(), n);
        used_ += n;
        bytes = bytes.subspan(n);
    }
}

std::array<uint64_t, 2> Blake2b128::finish() {
    bytes_ += used_;
    std::fill(block_.begin() + static_cast<std::ptrdiff_t>(used_), block_.end(), uint8_t{0});
    compress(true);
    return {h_[0], h_[1]};
}

}  // namespace exl3
