#include <array>
#include <vector>

#include "core/device.h"
#include "core/load.h"
#include "ops/exl3.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3::ref {
namespace {

void hadamard_blocks(std::vector<double>& v) {
    for (size_t i = 0; i < v.size(); i += kHadamard) hadamard128(v.data() + i);
}

/// (rows, k): (x * suh) H, with zeros where x is narrower than k.
std::vector<double> rotated_input(const Exl3LinearArgs& a, int64_t k) {
    std::vector<double> v(static_cast<size_t>(a.x.shape[0] * k));
    for (int64_t r = 0; r < a.x.shape[0]; ++r)
        for (int64_t i = 0; i < a.x.shape[1]; ++i)
            v[static_cast<size_t>(r * k + i)] =
                static_cast<double>(a.x.row<float>(r)[i]) * to_float(a.suh.as<f16>()[i]);
    hadamard_blocks(v);
    return v;
}

/// (rows, n): x W with W the inner matrix.
std::vector<double> inner_product(const Exl3LinearArgs& a, const std::vector<double>& x, int64_t k,
                                  int64_t n) {
    const int64_t rows = a.x.shape[0], tiles_out = n / kTile;
    std::vector<double> y(static_cast<size_t>(rows * n));
    std::array<f16, kTileSize> tile;
    for (int64_t i = 0; i < k / kTile; ++i)
        for (int64_t j = 0; j < tiles_out; ++j) {
            unpack_tile({a.packed.row<uint16_t>(i * tiles_out + j),
                         static_cast<size_t>(tile_words(a.bits))},
                        tile, a.bits, a.codebook);
            for (int e = 0; e < kTileSize; ++e) {
                const double w = to_float(tile[static_cast<size_t>(e)]);
                const int64_t row = i * kTile + e / kTile, col = j * kTile + e % kTile;
                for (int64_t r = 0; r < rows; ++r)
                    y[static_cast<size_t>(r * n + col)] += x[static_cast<size_t>(r * k + row)] * w;
            }
        }
    return y;
}

}  // namespace

void exl3_linear(Stream&, const Exl3LinearArgs& a) {
    const int64_t k = a.packed.shape[0] * kTile, n = a.packed.shape[1] * kTile;
    std::vector<double> y = inner_product(a, rotated_input(a, k), k, n);
    hadamard_blocks(y);
    for (int64_t r = 0; r < a.y.shape[0]; ++r)
        for (int64_t j = 0; j < a.y.shape[1]; ++j) {
            const double bias = a.bias ? load_f32(a.bias, 0, j) : 0;
            a.y.row<float>(r)[j] = static_cast<float>(
                y[static_cast<size_t>(r * n + j)] * to_float(a.svh.as<f16>()[j]) + bias);
        }
}

}  // namespace exl3::ref
