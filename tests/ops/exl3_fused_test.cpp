#include <array>

#include "support/devices.h"
#include "trellis/tile.h"

namespace exl3::test {
namespace {

constexpr Tolerance kTolerance = {.rtol = 1e-3};

Exl3FusedMatrix matrix(Stream& s, Arena& a, int64_t k, int64_t n, int bits, Codebook codebook,
                       View y, bool biased) {
    const Shape shape = {k / kTile, n / kTile, tile_words(bits)};
    const View packed = a.zeros(shape, DType::i16);
    ops::exl3_repack(s, {.trellis = a.bits(shape, DType::i16), .packed = packed, .bits = bits});
    Exl3FusedMatrix m{.packed = packed,
                      .suh = a.normal({k}, DType::f16),
                      .svh = a.normal({n}, DType::f16, 0.05),
                      .y = y,
                      .codebook = codebook,
                      .bits = bits};
    if (biased) m.bias = a.normal({n}, DType::f16);
    return m;
}

/// The columns [begin, begin + count) of a wider matrix.
View columns(View v, int64_t begin, int64_t count) {
    v.data = v.as<float>() + begin;
    v.shape = {v.shape[0], count};
    return v;
}

struct Case {
    int64_t rows = 1, k = 256, in = 256;
    std::vector<int64_t> widths = {128};
    std::vector<int> bits = {4};
    bool norm = false, gated = false, up = true, add = false, biased = false;
    Codebook codebook = kMul1;
};

void compare(const Case& c) {
    expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
        int64_t n = 0;
        for (const int64_t w : c.widths) n += w;
        const View y = a.normal({c.rows, n});
        Exl3FusedArgs args{.x = a.normal({c.rows, c.in}), .add = c.add};
        if (c.norm) {
            args.norm = true;
            args.norm_weight = a.normal({c.in}, DType::bf16);
            args.norm_weight_bias = 1;
            args.eps = 1e-5f;
        }
        if (c.gated) {
            args.gated = true;
            args.act = Act::gelu_tanh;
            if (c.up) args.up = a.normal({c.rows, c.in});
        }
        int64_t at = 0;
        for (size_t i = 0; i < c.widths.size(); ++i) {
            args.matrices[i] = matrix(s, a, c.k, c.widths[i], c.bits[i % c.bits.size()], c.codebook,
                                      columns(y, at, c.widths[i]), c.biased);
            at += c.widths[i];
        }
        ops::exl3_fused(s, args);
        return y;
    });
}

TEST(Exl3Fused, EqualsItsParts) {
    for (const Codebook codebook : {kMul1, kMcg, kThreeInst})
        for (const int64_t rows : {1, 2, 4, 7, 8, 9}) {
            compare({.rows = rows, .norm = true, .codebook = codebook});
            compare({.rows = rows, .gated = true, .add = true, .codebook = codebook});
            compare({.rows = rows, .gated = true, .up = false, .codebook = codebook});
            compare({.rows = rows, .add = true, .biased = true, .codebook = codebook});
        }
}

TEST(Exl3Fused, MatricesOfOneInputHaveScalesOfTheirOwn) {
    for (const int64_t rows : {1, 3, 6})
        for (const int64_t k : {128, 640, 2048})
            compare({.rows = rows,
                     .k = k,
                     .in = k - 3,
                     .widths = {640, 128, 128, 384},
                     .norm = true,
                     .biased = true});
}

TEST(Exl3Fused, BitsMayDiffer) {
    compare({.widths = {256, 128, 128}, .bits = {4, 3, 3}, .norm = true});
    compare({.rows = 5, .widths = {256, 128, 128}, .bits = {2, 8, 5}, .gated = true});
}

TEST(Exl3Fused, ReplaysFromAGraph) {
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 5);
        const View x = a.normal({1, 1024}), y = a.zeros({1, 1280});
        Exl3FusedArgs args{.x = x, .norm = true, .norm_weight = a.normal({1024}), .eps = 1e-6f};
        args.matrices[0] = matrix(*stream, a, 1024, 1024, 4, kMul1, columns(y, 0, 1024), false);
        args.matrices[1] = matrix(*stream, a, 1024, 256, 4, kMul1, columns(y, 1024, 256), false);
        ops::exl3_fused(*stream, args);
        const std::vector<float> want = values_of(*stream, y);
        const auto graph = stream->capture([&] {
            for (int i = 0; i < 3; ++i) ops::exl3_fused(*stream, args);
        });
        for (int i = 0; i < 20; ++i) {
            graph->launch();
            ASSERT_EQ(values_of(*stream, y), want) << name << ", replay " << i;
        }
    }
}

}  // namespace
}  // namespace exl3::test
