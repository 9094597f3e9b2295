#include <array>
#include <bit>
#include <limits>

#include "support/devices.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3::test {
namespace {

constexpr std::array kCodebooks = {kMul1, kMcg, kThreeInst};

std::string describe(const Codebook& codebook, int bits) {
    return std::string(name_of(codebook.kind)) + ", " + std::to_string(bits) + " bits";
}

/// A layer of random trellis words (any bits are valid) on one device.
struct Layer {
    View packed, suh, svh;
    Codebook codebook;
    int bits = 0;

    Layer(Stream& s, Arena& a, int64_t k, int64_t n, int bits_, Codebook codebook_)
        : codebook(codebook_), bits(bits_) {
        const Shape shape = {k / kTile, n / kTile, tile_words(bits)};
        packed = a.zeros(shape, DType::i16);
        ops::exl3_repack(s, {.trellis = a.bits(shape, DType::i16), .packed = packed, .bits = bits});
        suh = a.normal({k}, DType::f16);
        svh = a.normal({n}, DType::f16, 0.05);
    }
    View run(Stream& s, Arena& a, View x, int64_t out, ConstView bias = {}) const {
        const View y = a.zeros({x.shape[0], out});
        run_into(s, x, y, bias);
        return y;
    }
    void run_into(Stream& s, View x, View y, ConstView bias = {}) const {
        ops::exl3_linear(s, {.x = x,
                             .packed = packed,
                             .suh = suh,
                             .svh = svh,
                             .bias = bias,
                             .y = y,
                             .codebook = codebook,
                             .bits = bits});
    }
};

/// Of one element against the largest of the result; over a whole result the deviation is a third.
constexpr Tolerance kTolerance = {.rtol = 1e-3};

std::vector<float> host(Stream& s, View y) {
    s.synchronize();
    std::vector<float> v(static_cast<size_t>(y.shape.numel()));
    s.copy(y, dense(v.data(), DType::f32, y.shape));
    return v;
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
    double diff = 0, norm = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        diff += std::pow(static_cast<double>(a[i]) - b[i], 2);
        norm += std::pow(static_cast<double>(b[i]), 2);
    }
    return std::sqrt(diff / norm);
}

TEST(Exl3Linear, EveryBitWidthAndCodebook) {
    for (const Codebook codebook : kCodebooks)
        for (int bits = 1; bits <= 8; ++bits)
            for (const int64_t rows : {1, 3}) {
                SCOPED_TRACE(describe(codebook, bits));
                expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
                    const Layer layer(s, a, 256, 384, bits, codebook);
                    return layer.run(s, a, a.normal({rows, 256}), 384);
                });
            }
}

TEST(Exl3Linear, AnyNumberOfRowsAndSize) {
    for (const Codebook codebook : kCodebooks)
        for (const int64_t rows : {1, 2, 3, 5, 8, 9, 13, 33})
            for (const Shape size : {Shape{128, 128}, {640, 128}, {128, 1152}})
                expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
                    const Layer layer(s, a, size[0], size[1], 3, codebook);
                    return layer.run(s, a, a.normal({rows, size[0]}), size[1]);
                });
}

TEST(Exl3Linear, MoreRowsThanOnePassTakes) {
    expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
        const Layer layer(s, a, 128, 128, 2, kMul1);
        return layer.run(s, a, a.normal({401, 128}), 128);
    });
}

TEST(Exl3Linear, NarrowerInputAndOutputWithAnyBias) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (const int64_t rows : {1, 4})
            for (const int64_t in : {1, 127, 130, 200})
                for (const int64_t out : {1, 100, 129, 250})
                    expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
                        const Layer layer(s, a, 256, 256, 4, kMul1);
                        return layer.run(s, a, a.normal({rows, in}), out, a.normal({out}, dtype));
                    });
}

TEST(Exl3Linear, RowsMayBePartOfWiderOnes) {
    expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
        const Layer layer(s, a, 128, 256, 4, kMcg);
        View x = a.normal({5, 300}), y = a.zeros({5, 400});
        x.shape = {5, 128};
        y.shape = {5, 256};
        layer.run_into(s, x, y);
        y.shape = {5, 400};  // what lies beside the result stays zero
        return y;
    });
}

TEST(Exl3Linear, HonoursTheMultiplier) {
    for (const CodebookKind kind : {CodebookKind::mul1, CodebookKind::mcg})
        for (const int64_t rows : {1, 4})
            expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
                const Layer layer(s, a, 256, 128, 4, {kind, 0x9E3779B1u});
                return layer.run(s, a, a.normal({rows, 256}), 128);
            });
}

TEST(Exl3Linear, AnyMagnitudeOfActivations) {
    for (const Codebook codebook : {kMul1, kMcg})
        for (const double scale : {1e-30, 1e-8, 1e5, 1e12})
            for (const int64_t rows : {1, 4})
                expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
                    const Layer layer(s, a, 256, 128, 5, codebook);
                    return layer.run(s, a, a.normal({rows, 256}, DType::f32, scale), 128);
                });
}

/// The repeated byte whose state has the weight of largest magnitude.
uint16_t heaviest_word(Codebook codebook) {
    uint16_t best = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
        const auto word = static_cast<uint16_t>(byte * 0x0101);
        if (std::fabs(to_float(decode_state(word, codebook))) >
            std::fabs(to_float(decode_state(best, codebook))))
            best = word;
    }
    return best;
}

// About the largest sums a block can have: every weight the same and heavy, and every activation at
// its limit, which is what the transform makes of a single spike.
TEST(Exl3Linear, SumsOfABlockDoNotOverflow) {
    for (const Codebook codebook : kCodebooks)
        for (const float spike : {1e4f, -1e4f})
            for (const int64_t rows : {1, 2, 8})
                expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
                    Layer layer(s, a, 128, 128, 8, codebook);
                    const Shape shape = layer.packed.shape;
                    const std::vector<uint16_t> words(static_cast<size_t>(shape.numel()),
                                                      heaviest_word(codebook));
                    ops::exl3_repack(s, {.trellis = a.raw(words.data(), DType::i16, shape),
                                         .packed = layer.packed,
                                         .bits = 8});
                    const std::vector<uint16_t> ones(128, 0x3C00);
                    layer.suh = a.raw(ones.data(), DType::f16, {128});
                    std::vector<float> x(static_cast<size_t>(rows * 128));
                    for (int64_t r = 0; r < rows; ++r) x[static_cast<size_t>(r * 128)] = spike;
                    return layer.run(s, a, a.raw(x.data(), DType::f32, {rows, 128}), 128);
                });
}

TEST(Exl3Linear, ZeroRowsAndZeroActivations) {
    expect_same_on_all_devices({}, [&](Stream& s, Arena& a) {
        const Layer layer(s, a, 128, 128, 4, kMul1);
        layer.run(s, a, a.zeros({0, 128}), 128);
        return layer.run(s, a, a.zeros({2, 128}), 128, a.normal({128}));
    });
}

TEST(Exl3Linear, SpoiledRowsStayAmongThemselves) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (const float spoil : {kNan, std::numeric_limits<float>::infinity()})
        for (auto& [name, device] : all_devices()) {
            const auto stream = device->make_stream();
            Arena a(*device, *stream, 1);
            const Layer layer(*stream, a, 256, 128, 4, kMcg);
            std::vector<float> x(3 * 256, 1.0f);
            x[256 + 17] = spoil;
            const auto y =
                host(*stream, layer.run(*stream, a, a.raw(x.data(), DType::f32, {3, 256}), 128));
            for (int j = 0; j < 128; ++j) {
                EXPECT_TRUE(std::isfinite(y[j]) && std::isfinite(y[256 + j])) << name;
                EXPECT_FALSE(std::isfinite(y[128 + j])) << name;
            }
        }
}

// docs/design/cpu.md states these figures.
TEST(Exl3Linear, KeepsItsPrecision) {
    for (const Codebook codebook : kCodebooks)
        for (const int64_t rows : {1, 16}) {
            std::vector<float> want;
            for (auto& [name, device] : all_devices()) {
                const auto stream = device->make_stream();
                Arena a(*device, *stream, 7);
                const Layer layer(*stream, a, 1024, 256, 4, codebook);
                const auto y = host(*stream, layer.run(*stream, a, a.normal({rows, 1024}), 256));
                if (want.empty()) want = y;
                EXPECT_LT(relative_distance(y, want),
                          codebook.kind == CodebookKind::mul1 ? 2.7e-4 : 5e-4)
                    << name << ", " << describe(codebook, 4);
            }
        }
}

/// Rows of one batch, alone and together, on every CPU tier and thread count: always the same bits.
TEST(Exl3Linear, CpuResultsDoNotDependOnTierThreadsOrBatch) {
    constexpr int64_t kRows = 29, kIn = 384, kOut = 640;
    for (const Codebook codebook : kCodebooks)
        for (const int bits : {2, 3, 8}) {
            std::vector<float> want;
            for (auto& [name, device] : all_devices()) {
                if (!name.starts_with("cpu")) continue;
                const auto stream = device->make_stream();
                Arena a(*device, *stream, 3);
                const Layer layer(*stream, a, kIn, kOut, bits, codebook);
                const View x = a.normal({kRows, kIn});
                const auto together = host(*stream, layer.run(*stream, a, x, kOut));
                if (want.empty()) want = together;
                const auto same = [&](const std::vector<float>& y, int64_t first_row) {
                    for (size_t i = 0; i < y.size(); ++i)
                        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]),
                                  std::bit_cast<uint32_t>(
                                      want[static_cast<size_t>(first_row * kOut) + i]))
                            << name << ", " << describe(codebook, bits) << ", from row "
                            << first_row << " element " << i;
                };
                same(together, 0);
                for (const int64_t count : {1, 2, 7})
                    for (int64_t r = 0; r + count <= kRows; r += 11)
                        same(host(*stream, layer.run(*stream, a, slice_rows(x, r, count), kOut)),
                             r);
            }
        }
}

/// On a GPU a row's bits depend on the kernel that takes it (up to 8 rows, up to 32, ...), not on
/// the rows beside it, and never change from run to run.
TEST(Exl3Linear, GpuRowsDoNotDependOnTheBatch) {
    constexpr int64_t kRows = 32, kIn = 640, kOut = 1152;
    for (auto& [name, device] : all_devices()) {
        if (!is_gpu(name)) continue;
        for (const Codebook codebook : kCodebooks)
            for (const int bits : {2, 4, 7}) {
                const auto stream = device->make_stream();
                Arena a(*device, *stream, 3);
                const Layer layer(*stream, a, kIn, kOut, bits, codebook);
                const View x = a.normal({kRows, kIn});
                const auto run = [&](int64_t first, int64_t count) {
                    return host(*stream, layer.run(*stream, a, slice_rows(x, first, count), kOut));
                };
                const auto same = [&](int64_t all, int64_t first, int64_t count) {
                    const auto want = run(0, all), got = run(first, count);
                    for (size_t i = 0; i < got.size(); ++i)
                        ASSERT_EQ(
                            std::bit_cast<uint32_t>(got[i]),
                            std::bit_cast<uint32_t>(want[static_cast<size_t>(first * kOut) + i]))
                            << name << ", " << describe(codebook, bits) << ", rows " << first
                            << " and " << count - 1 << " more";
                };
                for (const int64_t count : {1, 2, 3, 5, 8}) same(8, 8 - count, count);
                for (const int64_t count : {9, 17, 32}) same(32, 0, count);
            }
    }
}

TEST(Exl3Decode, IsBitExactForEveryBitWidthAndCodebook) {
    for (const DType dtype : {DType::f32, DType::f16})
        for (Codebook codebook :
             {kMul1, kMcg, kThreeInst, Codebook{CodebookKind::mul1, 0x9E3779B1u}})
            for (int bits = 1; bits <= 8; ++bits)
                expect_same_on_all_devices({.rtol = 0}, [&](Stream& s, Arena& a) {
                    const Layer layer(s, a, 256, 384, bits, codebook);
                    const View y = a.zeros({256, 384}, dtype);
                    ops::exl3_decode(
                        s, {.packed = layer.packed, .y = y, .codebook = codebook, .bits = bits});
                    if (dtype == DType::f32) return y;
                    s.synchronize();
                    std::vector<f16> halves(256 * 384);
                    s.copy(y, dense(halves.data(), DType::f16, y.shape));
                    std::vector<float> v;
                    for (const f16 h : halves) v.push_back(to_float(h));
                    return a.raw(v.data(), DType::f32, y.shape);
                });
}

TEST(Exl3Decode, WritesRowsOfAWiderMatrix) {
    expect_same_on_all_devices({.rtol = 0}, [&](Stream& s, Arena& a) {
        const Layer layer(s, a, 128, 128, 3, kMcg);
        View y = a.zeros({128, 200});
        View part = y;
        part.shape = {128, 128};
        ops::exl3_decode(s, {.packed = layer.packed, .y = part, .codebook = kMcg, .bits = 3});
        return y;
    });
}

TEST(Exl3Repack, TakesBytesOfAnyAlignment) {
    const Shape shape = {8, 8, tile_words(3)};
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 1);
        const auto bytes = static_cast<size_t>(shape.numel()) * 2;
        std::vector<char> file(bytes + 1);
        for (char& c : file) c = static_cast<char>(a.random().next());
        const std::vector<char> copy(file.begin() + 1, file.end());
        std::array<View, 2> packed;
        const std::array<const char*, 2> from = {file.data() + 1, copy.data()};
        for (size_t i = 0; i < 2; ++i) {
            packed[i] = a.zeros(shape, DType::i16);
            ops::exl3_repack(
                *stream,
                {.trellis = dense(from[i], DType::i16, shape), .packed = packed[i], .bits = 3});
        }
        stream->synchronize();
        std::vector<int16_t> first(bytes / 2), second(bytes / 2);
        stream->copy(packed[0], dense(first.data(), DType::i16, shape));
        stream->copy(packed[1], dense(second.data(), DType::i16, shape));
        EXPECT_EQ(first, second) << name;
    }
}

}  // namespace
}  // namespace exl3::test
