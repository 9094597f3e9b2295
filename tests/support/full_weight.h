#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "quant/quantize_linear.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3::test {

/// The weight that a reader of a quantized matrix sees, in double: diag(suh) H W H diag(svh).
inline std::vector<double> full_weight(const QuantResult& q, int64_t k, int64_t n, int bits,
                                       Codebook codebook) {
    std::vector<double> w(static_cast<size_t>(k * n));
    std::vector<f16> tile(kTileSize);
    const int64_t words = tile_words(bits), cols = n / kTile;
    for (int64_t t = 0; t < k / kTile * cols; ++t) {
        unpack_tile(std::span(q.trellis).subspan(static_cast<size_t>(t * words),
                                                 static_cast<size_t>(words)),
                    std::span<f16, kTileSize>(tile.data(), kTileSize), bits, codebook);
        for (int r = 0; r < kTile; ++r)
            for (int c = 0; c < kTile; ++c)
                w[static_cast<size_t>((t / cols * kTile + r) * n + t % cols * kTile + c)] =
                    to_float(tile[static_cast<size_t>(r * kTile + c)]);
    }
    for (int64_t j = 0; j < n; ++j)
        for (int64_t b = 0; b < k; b += kHadamard)
            hadamard128(&w[static_cast<size_t>(b * n + j)], n);
    for (int64_t i = 0; i < k; ++i) {
        for (int64_t b = 0; b < n; b += kHadamard) hadamard128(&w[static_cast<size_t>(i * n + b)]);
        for (int64_t j = 0; j < n; ++j)
            w[static_cast<size_t>(i * n + j)] *=
                static_cast<double>(to_float(q.suh[static_cast<size_t>(i)])) *
                to_float(q.svh[static_cast<size_t>(j)]);
    }
    return w;
}

/// tr(AᵀHA) of a (k, n) matrix, or tr(AᵀA) without H (k, k).
inline double weighted_square(const std::vector<double>& a, const std::vector<float>* h, int64_t k,
                              int64_t n) {
    double sum = 0;
    std::vector<double> row(static_cast<size_t>(n));
    for (int64_t i = 0; i < k; ++i) {
        std::fill(row.begin(), row.end(), 0.0);
        for (int64_t m = h ? 0 : i; m < (h ? k : i + 1); ++m)
            for (int64_t j = 0; j < n; ++j)
                row[static_cast<size_t>(j)] += (h ? (*h)[static_cast<size_t>(i * k + m)] : 1.0) *
                                               a[static_cast<size_t>(m * n + j)];
        for (int64_t j = 0; j < n; ++j)
            sum += row[static_cast<size_t>(j)] * a[static_cast<size_t>(i * n + j)];
    }
    return sum;
}

}  // namespace exl3::test
