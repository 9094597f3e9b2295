#include "quant/target_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "ops/ops.h"
#include "quant/tiles.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

// Measured on 300 000 normal values; the largest bits after outliers were drawn away
// (docs/design/quant.md).
constexpr std::array kBestOfMul1 = {0.0, 1.12, 0.98, 0.94, 0.91, 0.90, 0.85, 0.82, 0.79};
constexpr std::array kBestOfOthers = {0.0, 1.12, 0.98, 0.94, 0.91, 0.89, 0.83, 0.81, 0.77};
constexpr std::array kError = {0.0,     0.2714,  0.0683,  0.0174, 0.00445,
                               0.00115, 0.00030, 8.1e-05, 2.1e-05};

/// Tiles and how many each stands for.
struct Sample {
    std::vector<int64_t> tiles;  // index in row-major order of tiles
    std::vector<double> weight;
};

std::vector<float> gather(ConstView target, const std::vector<int64_t>& tiles) {
    const int64_t cols = target.shape[1] / kTile;
    std::vector<float> out(tiles.size() * kTileSize);
    for (size_t i = 0; i < tiles.size(); ++i)
        for (int p = 0; p < kTileSize; ++p)
            out[i * kTileSize + static_cast<size_t>(p)] = target.row<float>(
                tiles[i] / cols * kTile + tile_row(p))[tiles[i] % cols * kTile + tile_col(p)];
    return out;
}

double rounding_error(Stream& s, const std::vector<float>& x, const std::vector<double>& weight,
                      double scale, const TrellisKind& kind) {
    const auto scope = s.workspace().scope();
    const auto tiles = static_cast<int64_t>(weight.size());
    const Shape shape = {tiles, kTileSize};
    const View scaled = s.workspace().take(DType::f32, shape);
    const View values = s.workspace().take(DType::f32, shape);
    for (size_t i = 0; i < x.size(); ++i) scaled.as<float>()[i] = static_cast<float>(x[i] * scale);
    ops::encode_tiles(s, {.target = scaled,
                          .states = s.workspace().take(DType::u16, shape),
                          .values = values,
                          .codebook = kind.codebook,
                          .bits = kind.bits});
    s.synchronize();
    double sum = 0;
    for (int64_t t = 0; t < tiles; ++t)
        for (int64_t i = t * kTileSize; i < (t + 1) * kTileSize; ++i)
            sum += weight[static_cast<size_t>(t)] *
                   std::pow(values.as<float>()[i] / scale - x[static_cast<size_t>(i)], 2);
    return sum;
}

// Where the parabola through three equidistant points is least, in steps from the middle one.
double vertex(double left, double middle, double right) {
    const double curve = left - 2 * middle + right;
    return curve > 0 ? std::clamp(0.5 * (left - right) / curve, -0.5, 0.5) : 0;
}

/// The quarter of the sample with the largest values stands for itself, the others, evenly spaced,
/// for the rest.
Sample stratified_sample(ConstView target) {
    const int64_t rows = target.shape[0] / kTile, cols = target.shape[1] / kTile, all = rows * cols;
    const int64_t size = std::min(all, std::clamp<int64_t>(all / 12, 24, 96)), extreme = size / 4;
    std::vector<float> largest(static_cast<size_t>(all));
    for (int64_t i = 0; i < target.shape[0]; ++i)
        for (int64_t j = 0; j < target.shape[1]; ++j) {
            float& m = largest[static_cast<size_t>(i / kTile * cols + j / kTile)];
            m = std::max(m, std::fabs(target.row<float>(i)[j]));
        }
    Sample sample;
    std::vector<int64_t> order(static_cast<size_t>(all));
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(
        order.begin(), order.begin() + extreme, order.end(), [&](int64_t a, int64_t b) {
            const float x = largest[static_cast<size_t>(a)], y = largest[static_cast<size_t>(b)];
            return x != y ? x > y : a < b;
        });
    sample.tiles.assign(order.begin(), order.begin() + extreme);
    sample.weight.assign(static_cast<size_t>(extreme), 1.0);
    std::sort(order.begin() + extreme, order.end());
    const int64_t others = all - extreme, chosen = size - extreme;
    for (int64_t i = 0; i < chosen; ++i) {
        sample.tiles.push_back(order[static_cast<size_t>(extreme + i * others / chosen)]);
        sample.weight.push_back(static_cast<double>(others) / static_cast<double>(chosen));
    }
    return sample;
}

/// The published sample: a wrapped diagonal three tiles wide and the tiles of largest and smallest
/// norm.
std::vector<int64_t> diagonal_sample(ConstView target) {
    const int64_t rows = target.shape[0] / kTile, cols = target.shape[1] / kTile, all = rows * cols,
                  length = std::max(rows, cols);
    std::vector<int64_t> tiles;
    for (int64_t w = 0; w < 3; ++w)
        for (int64_t i = 0; i < length; ++i) tiles.push_back(i % rows * cols + (i + w) % cols);
    std::vector<double> norm(static_cast<size_t>(all));
    for (int64_t i = 0; i < target.shape[0]; ++i)
        for (int64_t j = 0; j < target.shape[1]; ++j)
            norm[static_cast<size_t>(i / kTile * cols + j / kTile)] +=
                std::pow(target.row<float>(i)[j], 2);
    std::vector<int64_t> order(static_cast<size_t>(all));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return norm[static_cast<size_t>(a)] < norm[static_cast<size_t>(b)];
    });
    const int64_t ends = std::min(std::max<int64_t>(8, 3 * length / 16), (all + 1) / 2);
    tiles.insert(tiles.end(), order.begin(), order.begin() + ends);
    tiles.insert(tiles.end(), order.end() - ends, order.end());
    return tiles;
}

}  // namespace

double gaussian_scale(const TrellisKind& kind) {
    const auto bits = static_cast<size_t>(kind.bits);
    return kind.codebook.kind == CodebookKind::mul1 ? kBestOfMul1[bits]
                                                    : kBestOfOthers[bits] * kCodebookScale;
}

double gaussian_error(int bits) {
    return kError[static_cast<size_t>(bits)];
}

float reach(Codebook codebook) {
    return codebook.kind == CodebookKind::mul1 ? 3.3f : 3.9f;
}

double refine_scale(Stream& s, ConstView target, double scale, const TrellisKind& kind) {
    constexpr double kStep = 1.06;
    constexpr int kSteps = 8;
    const Sample sample = stratified_sample(target);
    const std::vector<float> x = gather(target, sample.tiles);
    const auto error = [&](double at) { return rounding_error(s, x, sample.weight, at, kind); };
    double left = error(scale / kStep), middle = error(scale), right = error(scale * kStep);
    for (int i = 0; i < kSteps && left < middle; ++i) {
        scale /= kStep;
        right = middle;
        middle = left;
        left = error(scale / kStep);
    }
    for (int i = 0; i < kSteps && right < middle; ++i) {
        scale *= kStep;
        left = middle;
        middle = right;
        right = error(scale * kStep);
    }
    return scale * std::pow(kStep, vertex(left, middle, right));
}

double grid_scale(Stream& s, ConstView target, const TrellisKind& kind) {
    const std::vector<int64_t> all = diagonal_sample(target);
    std::vector<int64_t> third;
    for (size_t i = 0; i < all.size(); i += 3) third.push_back(all[i]);
    const auto errors = [&](const std::vector<int64_t>& tiles, const std::vector<double>& scales) {
        const std::vector<float> x = gather(target, tiles);
        std::vector<double> e;
        for (const double g : scales)
            e.push_back(rounding_error(s, x, std::vector<double>(tiles.size(), 1.0), g, kind));
        return e;
    };
    const auto least = [](const std::vector<double>& e) {
        return static_cast<size_t>(std::min_element(e.begin(), e.end()) - e.begin());
    };
    std::vector<double> coarse, fine;
    for (int i = 0; i < 10; ++i) coarse.push_back(0.1 + 0.2 * i);
    const double center = coarse[least(errors(third, coarse))];
    for (int i = -2; i <= 2; ++i) fine.push_back(std::max(0.01, center + 0.075 * i));
    const std::vector<double> e = errors(all, fine);
    const size_t best = least(e);
    const bool inside = best > 0 && best + 1 < fine.size();
    const double offset = inside ? vertex(e[best - 1], e[best], e[best + 1]) : 0;
    return std::max(0.01, fine[best] + 0.075 * offset);
}

}  // namespace exl3
