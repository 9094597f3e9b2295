#include "quant/row_scales.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "ops/ops.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

// White rounding noise leaves errors of covariance P = ((I + L)(I + L)ᵀ)^-1 behind, and
// P M = (I + L)^-T D (I + L)ᵀ for the metric M.

/// How much of tr D each row's scale is responsible for, (k): the diagonal of P M in the basis
/// before the Hadamard transform. P M is block-upper-triangular, so its diagonal blocks of 128
/// follow from those of the factor alone.
std::vector<double> error_shares(const std::vector<float>& factor, int64_t k) {
    std::vector<double> share(static_cast<size_t>(k));
    std::vector<double> x(kHadamard * kHadamard), y(kHadamard * kHadamard);
    for (int64_t begin = 0; begin < k; begin += kHadamard) {
        const auto l = [&](int i, int j) -> double {
            return factor[static_cast<size_t>((begin + i) * k + begin + j)];
        };
        const auto root = [&](int i, int j) {
            return i / kTile == j / kTile && j <= i ? l(i, j) : 0.0;
        };
        // y = (I + L) D^1/2, rows from top to bottom; x = (I + L)^-T D^1/2, from bottom to top.
        for (int i = 0; i < kHadamard; ++i)
            for (int j = 0; j < kHadamard; ++j) {
                double v = root(i, j);
                for (int m = j / kTile * kTile;
                     m < std::min(i / kTile * kTile, j / kTile * kTile + kTile); ++m)
                    v += l(i, m) * root(m, j);
                y[static_cast<size_t>(i * kHadamard + j)] = v;
            }
        for (int i = kHadamard - 1; i >= 0; --i)
            for (int j = 0; j < kHadamard; ++j) {
                double v = root(i, j);
                for (int m = i / kTile * kTile + kTile; m < kHadamard; ++m)
                    v -= l(m, i) * x[static_cast<size_t>(m * kHadamard + j)];
                x[static_cast<size_t>(i * kHadamard + j)] = v;
            }
        for (int j = 0; j < kHadamard; ++j) {
            hadamard128(x.data() + j, kHadamard);
            hadamard128(y.data() + j, kHadamard);
        }
        for (int i = 0; i < kHadamard; ++i)
            for (int j = 0; j < kHadamard; ++j)
                share[static_cast<size_t>(begin + i)] += x[static_cast<size_t>(i * kHadamard + j)] *
                                                         y[static_cast<size_t>(i * kHadamard + j)];
    }
    return share;
}

/// tr(P) / k, from products with random signs.
double spread_of(Stream& s, const std::vector<float>& factor, int64_t k, uint64_t seed) {
    constexpr int64_t kProbes = 16;
    std::vector<float> x(static_cast<size_t>(k * kProbes), 1.0f);
    draw_signs(x, seed);
    // x <- (I + L)^-1 x, by blocks; blocks of other spans are taken by one gemm.
    const auto eliminate = [&](int64_t row, int64_t rows, int64_t col, int64_t cols) {
        if (cols == 0) return;
        ops::gemm(s, {.a = ConstView{factor.data() + row * k + col, DType::f32, {rows, cols}, k},
                      .b = dense(x.data() + col * kProbes, DType::f32, {cols, kProbes}),
                      .c = dense(x.data() + row * kProbes, DType::f32, {rows, kProbes}),
                      .alpha = -1,
                      .beta = 1});
    };
    for (int64_t begin = 0; begin < k; begin += kHadamard) {
        eliminate(begin, kHadamard, 0, begin);
        for (int64_t b = begin + kTile; b < begin + kHadamard; b += kTile)
            eliminate(b, kTile, begin, b - begin);
    }
    double sum = 0;
    for (const float v : x) sum += static_cast<double>(v) * v;
    return sum / static_cast<double>(x.size());
}

/// Mean of the diagonal of diag(scale) H diag(scale).
double mean_diagonal(const FinalHessian& h, const std::vector<float>& scale) {
    double sum = 0;
    for (int64_t i = 0; i < h.k; ++i) {
        const double v = scale[static_cast<size_t>(i)];
        sum += v * v * h.mean[static_cast<size_t>(i * h.k + i)];
    }
    return sum / static_cast<double>(h.k);
}

/// Without feedback the best scale of a row is rms^1/2 h^-1/4, where h is the mean square of its
/// input; with ideal feedback it is rms and h does not matter. Half way between is near the optimum
/// of every Hessian measured.
std::vector<float> first_scales(const FinalHessian* h, const std::vector<double>& rms) {
    std::vector<float> scale(rms.size());
    for (size_t i = 0; i < rms.size(); ++i) {
        if (rms[i] == 0) continue;
        double v = std::sqrt(rms[i]);
        if (h) {
            // An input that is hardly ever on must not take the range of its neighbours.
            const double own = h->mean[i * rms.size() + i] / h->diagonal;
            v = std::pow(rms[i], 0.75) * std::pow(std::max(own, 1e-3), -0.125);
        }
        scale[i] = static_cast<float>(v);
    }
    normalize_blocks(rms, scale);
    return scale;
}

/// One step towards the scales at which no shift between two rows of a block lowers the error: each
/// row's share of it is then in proportion to (rms / scale)^2.
void improve_scales(const std::vector<double>& rms, const std::vector<double>& share,
                    std::vector<float>& scale) {
    for (size_t begin = 0; begin < rms.size(); begin += kHadamard) {
        double shares = 0, loads = 0;
        const auto load = [&](size_t i) { return std::pow(rms[i] / scale[i], 2); };
        for (size_t i = begin; i < begin + kHadamard; ++i) {
            if (scale[i] == 0) continue;
            shares += std::max(share[i], 0.0);
            loads += load(i);
        }
        if (!(shares > 0) || !(loads > 0)) continue;
        for (size_t i = begin; i < begin + kHadamard; ++i) {
            if (scale[i] == 0) continue;
            const double want = load(i) / loads, has = std::max(share[i], 0.0) / shares;
            // Shares move with the scales, in rough proportion to their squares.
            const double step = std::clamp(want / (has + 1e-30), 0.1, 10.0);
            scale[i] *= static_cast<float>(std::pow(step, 0.3));
        }
    }
    normalize_blocks(rms, scale);
}

}  // namespace

void draw_signs(std::vector<float>& x, uint64_t seed) {
    for (size_t i = 0; i < x.size(); ++i)
        if (noise64(seed, i / 64) >> (i % 64) & 1) x[i] = -x[i];
}

void normalize_blocks(const std::vector<double>& rms, std::vector<float>& scale) {
    for (size_t begin = 0; begin < rms.size(); begin += kHadamard) {
        double sum = 0;
        for (size_t i = begin; i < begin + kHadamard; ++i)
            if (scale[i] != 0) sum += std::pow(rms[i] / scale[i], 2);
        const auto factor = static_cast<float>(std::sqrt(sum / kHadamard));
        for (size_t i = begin; i < begin + kHadamard; ++i) scale[i] *= factor;
    }
}

RowScales choose_row_scales(Stream& s, const FinalHessian* h, const std::vector<double>& rms,
                            double error, int budget, uint64_t seed) {
    constexpr int kSignDraws = 3;
    const std::vector<float> magnitude = first_scales(h, rms);
    RowScales r{.scale = magnitude};
    draw_signs(r.scale, seed);
    const bool zero = std::all_of(rms.begin(), rms.end(), [](double v) { return v == 0; });
    if (!h || zero) return r;

    // The variance that feedback adds raises the rounding error in proportion. Minimising the
    // product is minimising tr(P (M + damping)), damping = error * noise; 0.4 is where tr(P M)
    // usually is, and is replaced by its value when there is one.
    double damping = h->uncertainty + 0.4 * error;
    const auto factorize = [&] {
        r.factor = rotated(s, *h, r.scale, damping);
        return block_ldl(s, r.factor, h->k);
    };
    double best = factorize();
    --budget;
    if (budget > kSignDraws) {
        std::vector<float> best_scale = r.scale;
        for (int draw = 1; draw < kSignDraws; ++draw, --budget) {
            r.scale = magnitude;
            draw_signs(r.scale, noise64(seed, static_cast<uint64_t>(draw)));
            const double trace = factorize();
            if (trace < best) {
                best = trace;
                best_scale = r.scale;
            }
        }
        if (best_scale != r.scale) {
            r.scale = best_scale;
            factorize();
        }
    }
    double spread = spread_of(s, r.factor, h->k, seed);
    if (budget > 0) {
        const double diagonal = mean_diagonal(*h, r.scale);
        const double noise = best / static_cast<double>(h->k) - damping * diagonal * spread;
        damping = h->uncertainty + error * std::max(noise, 0.0) / diagonal;
        improve_scales(rms, error_shares(r.factor, h->k), r.scale);
        factorize();
        spread = spread_of(s, r.factor, h->k, seed);
    }
    r.growth = 1 / std::max(0.5, 1 - error * (spread - 1));
    return r;
}

}  // namespace exl3
