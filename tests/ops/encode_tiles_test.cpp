#include <algorithm>
#include <array>

#include "support/devices.h"
#include "trellis/tile.h"

namespace exl3::test {
namespace {

struct Encoded {
    std::vector<uint16_t> states;
    std::vector<float> values, target;
    double squared_error = 0;
    int64_t tiles = 0;
};

// Encodes normal targets of deviation `rms` and checks what must hold for any tile: the ring is
// closed, storage gives the states back, and the values are those of the states.
Encoded encode(
    Device& device, int64_t tiles, int bits, Codebook codebook, double rms,
    const std::function<void(float*)>& edit = [](float*) {}) {
    const auto stream = device.make_stream();
    Arena a(device, *stream, 17);
    const Shape shape = {tiles, kTileSize};
    Encoded r{.tiles = tiles};
    for (int64_t i = 0; i < shape.numel(); ++i)
        r.target.push_back(static_cast<float>(rms * a.random().normal()));
    edit(r.target.data());
    const View target = a.raw(r.target.data(), DType::f32, shape);
    const View values = a.zeros(shape);
    const Tensor states = device.make_tensor(DType::u16, shape);
    ops::encode_tiles(*stream, {.target = target,
                                .states = states.view,
                                .values = values,
                                .codebook = codebook,
                                .bits = bits});
    r.values = values_of(*stream, values);
    r.states.resize(static_cast<size_t>(shape.numel()));
    stream->copy(states.view, dense(r.states.data(), DType::u16, shape));
    stream->synchronize();
    for (size_t t = 0; t < static_cast<size_t>(tiles); ++t) {
        const std::span<const uint16_t, kTileSize> s{r.states.data() + t * kTileSize, kTileSize};
        std::vector<uint16_t> words(static_cast<size_t>(tile_words(bits)));
        std::array<uint16_t, kTileSize> again{};
        pack_states(s, words, bits);
        unpack_states(words, again, bits);
        for (size_t p = 0; p < kTileSize; ++p) {
            EXPECT_EQ(again[p], s[p]) << "the ring is open: tile " << t << ", position " << p;
            const float v = r.values[t * kTileSize + p], w = r.target[t * kTileSize + p];
            EXPECT_EQ(v, to_float(decode_state(s[p], codebook)));
            r.squared_error += (v - w) * static_cast<double>(v - w);
        }
    }
    return r;
}

constexpr std::array kCodebooks = {kThreeInst, kMcg, kMul1};
// Best scale of unit normal data, relative to the codebook's rms.
constexpr std::array kGain = {0.0, 1.18, 1.00, 0.97, 0.94, 0.94, 0.96, 0.95, 0.92};
double rms_of(Codebook c) {
    return c.kind == CodebookKind::mul1 ? 1.0 : 1.2437;
}

TEST(EncodeTiles, CostsAreThoseOfTheReference) {
    const auto devices = all_devices();
    for (const Codebook codebook : kCodebooks)
        for (int bits = 1; bits <= 8; ++bits) {
            const double rms = kGain[static_cast<size_t>(bits)] * rms_of(codebook);
            double want = 0;
            for (const auto& [name, device] : devices) {
                const double cost = encode(*device, 1, bits, codebook, rms).squared_error;
                if (name == "ref") want = cost;
                // Both are near-optimal rings; their seams may differ.
                EXPECT_LE(cost, 1.015 * want)
                    << name << ", bits " << bits << ", " << name_of(codebook.kind);
            }
        }
}

TEST(EncodeTiles, MeanSquaredErrorOfNormalData) {
    // Per bits: the error of the plain scheme at its best scale, mul1 (docs/design/quant.md).
    constexpr std::array kError = {0.0,     0.2733,   0.0683,    0.0175,   0.00445,
                                   0.00115, 0.000306, 0.0000810, 0.0000220};
    constexpr std::array kScale = {0.0, 1.12, 0.98, 0.94, 0.91, 0.89, 0.82, 0.80, 0.77};
    const auto device = cpu::open();
    for (int bits = 1; bits <= 8; ++bits) {
        const double scale = kScale[static_cast<size_t>(bits)];
        const Encoded r = encode(*device, 160, bits, kMul1, scale);
        const double mse = r.squared_error / (scale * scale * kTileSize * 160);
        EXPECT_LE(mse, 1.02 * kError[static_cast<size_t>(bits)]) << bits;
        EXPECT_GE(mse, std::pow(4.0, -bits)) << bits << ": below the rate-distortion bound";
    }
}

TEST(EncodeTiles, DoesNotDependOnThreadsOrNeighbours) {
    const auto one = cpu::open({.threads = 1}), three = cpu::open({.threads = 3});
    for (const int bits : {1, 2, 3, 4, 5, 8})
        for (const int64_t tiles : {1, 7}) {
            const Encoded a = encode(*one, tiles, bits, kMul1, 0.95);
            EXPECT_EQ(a.states, encode(*three, tiles, bits, kMul1, 0.95).states) << bits;
            const Encoded first = encode(*one, 1, bits, kMul1, 0.95);
            EXPECT_TRUE(std::equal(first.states.begin(), first.states.end(), a.states.begin()));
        }
}

TEST(EncodeTiles, DecodedTilesComeBackExactly) {
    for (const auto& [name, device] : all_devices())
        for (const Codebook codebook : kCodebooks)
            for (const int bits : {2, 4, 5, 8}) {
                const auto decoded = [&](float* target) {
                    Random random(5);
                    std::vector<uint16_t> words(static_cast<size_t>(tile_words(bits)));
                    std::array<uint16_t, kTileSize> states{};
                    for (auto& w : words) w = static_cast<uint16_t>(random.next());
                    unpack_states(words, states, bits);
                    for (size_t p = 0; p < kTileSize; ++p)
                        target[p] = to_float(decode_state(states[p], codebook));
                };
                // Another state may have the same value, so values are compared.
                EXPECT_EQ(encode(*device, 1, bits, codebook, 1, decoded).squared_error, 0)
                    << name << ", bits " << bits << ", " << name_of(codebook.kind);
            }
}

TEST(EncodeTiles, AnyFiniteTargetHasAClosedPath) {
    const auto devices = all_devices();
    for (const int bits : {1, 2, 3, 4, 5, 8})
        for (const float extreme : {3.3e38f, -70.0f, 4.2f, 0.0f}) {
            double want = 0;
            for (const auto& [name, device] : devices) {
                const auto all = [&](float* x) { std::fill_n(x, kTileSize, extreme); };
                const Encoded r = encode(*device, 1, bits, kMul1, 1, all);
                // A tile of one far value is as near to it on average as the code allows.
                double mean = 0;
                for (const float v : r.values) mean += v / kTileSize;
                if (name == "ref") want = mean;
                EXPECT_NEAR(mean, want, 0.05 * std::fabs(want) + 0.03)
                    << name << ", bits " << bits << ", target " << extreme;
            }
        }
}

TEST(EncodeTiles, OneOutlierDoesNotSpoilItsTile) {
    const auto device = cpu::open();
    for (int bits = 2; bits <= 8; ++bits) {
        const auto outlier = [](float* x) { x[77] = 30; };
        const Encoded with = encode(*device, 1, bits, kMul1, 0.9, outlier);
        const Encoded without = encode(*device, 1, bits, kMul1, 0.9);
        double rest = 0;
        for (size_t p = 0; p < kTileSize; ++p)
            if (p != 77) rest += std::pow(with.values[p] - with.target[p], 2);
        EXPECT_GT(with.values[77], 2.0) << bits;
        // Reaching the far value costs its neighbours something: at most a tenth of what it saves.
        EXPECT_LT(rest, without.squared_error + 3) << bits;
    }
}

}  // namespace
}  // namespace exl3::test
