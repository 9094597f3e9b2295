#include <array>

#include "support/devices.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3::test {
namespace {

constexpr std::array kCodebooks = {kMul1, kMcg, kThreeInst};

/// A layer of random trellis words (any bits are valid) on one device.
struct Layer {
    View packed, suh, svh, bias;
    Codebook codebook;
    int bits = 0;

    Layer(Stream& s, Arena& a, int64_t k, int64_t n, int bits_, Codebook codebook_)
        : codebook(codebook_), bits(bits_) {
        const Shape shape = {k / kTile, n / kTile, tile_words(bits)};
        packed = a.zeros(shape, DType::i16);
        ops::exl3_repack(
            s, {.trellis = a.bits(shape, DType::i16), .packed = packed, .bits = bits});
        suh = a.normal({k}, DType::f16);
        svh = a.normal({n}, DType::f16, 0.05);
        bias = a.normal({n}, DType::f16);
    }
    void run(Stream& s, View x, View y, ConstView with_bias = {}) const {
        ops::exl3_linear(s, {.x = x,
                             .packed = packed,
                             .suh = suh,
                             .svh = svh,
                             .bias = with_bias,
                             .y = y,
                             .codebook = codebook,
                             .bits = bits});
    }
};

/// Relative tolerance of one element against the largest of the result. Over a row the deviation is
/// a third of this (Exl3Linear.KeepsItsPrecision).
constexpr Tolerance kTolerance = {.rtol = 1e-3};

TEST(Exl3Linear, EveryBitWidthAndCodebook) {
    for (const Codebook codebook : kCodebooks)
        for (int bits = 1; bits <= 8; ++bits)
            for (const int64_t rows : {1, 3}) {
                SCOPED_TRACE(std::string(name_of(codebook.kind)) + " " + std::to_string(bits));
                expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
                    const Layer layer(s, a, 256, 384, bits, codebook);
                    const View y = a.zeros({rows, 384});
                    layer.run(s, a.normal({rows, 256}), y);
                    return y;
                });
            }
}

TEST(Exl3Linear, AnyNumberOfRows) {
    for (const Codebook codebook : kCodebooks)
        for (const int64_t rows : {1, 2, 5, 8, 9, 13, 33})
            for (const Shape size : {Shape{128, 128}, {640, 128}, {128, 1152}})
                expect_same_on_all_devices(kTolerance, [&](Stream& s, Arena& a) {
                    const Layer layer(s, a, size[0], size[1], 3, codebook);
                    const View y = a.zeros({rows, size[1]});
                    layer.run(s, a.normal({rows, size[0]}), y);
                    return y;
                });
}

}  // namespace
}  // namespace exl3::test
