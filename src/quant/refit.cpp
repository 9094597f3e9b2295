#include "quant/refit.h"

#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "quant/tiles.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

/// H inner H of the columns [begin, begin + cols): the matrix without its scales.
void decode(Stream& s, const Rounded& r, int64_t begin, View out) {
    const std::vector<f16> codebook = codebook_table(r.kind.codebook);
    std::vector<float> table(codebook.size());
    std::transform(codebook.begin(), codebook.end(), table.begin(),
                   [](f16 v) { return to_float(v); });
    const int64_t tiles = out.shape[1] / kTile;
    std::vector<float> values(static_cast<size_t>(tiles * kTileSize));
    for (int64_t row = 0; row < r.k; row += kTile) {
        const uint16_t* states = r.states.data() + row * r.n + begin * kTile;
        for (size_t i = 0; i < values.size(); ++i) values[i] = table[states[i]];
        scatter_tiles(values.data(), tiles, out.row<float>(row));
    }
    unrotate(s, out);
}

void scale_rows(View x, const std::vector<float>& scale) {
    for (int64_t i = 0; i < x.shape[0]; ++i)
        for (int64_t j = 0; j < x.shape[1]; ++j)
            x.row<float>(i)[j] *= scale[static_cast<size_t>(i)];
}
void scale_columns(View x, const float* scale) {
    for (int64_t i = 0; i < x.shape[0]; ++i)
        for (int64_t j = 0; j < x.shape[1]; ++j) x.row<float>(i)[j] *= scale[j];
}

/// H x, or x itself without H.
View times(Stream& s, const FinalHessian* h, ConstView x) {
    const View y = s.workspace().take(DType::f32, x.shape);
    if (h)
        ops::gemm(s, {.a = dense(h->mean.data(), DType::f32, {h->k, h->k}), .b = x, .c = y});
    else
        s.copy(x, y);
    s.synchronize();
    return y;
}

ConstView columns(ConstView weight, int64_t begin, int64_t count) {
    weight.data = weight.as<float>() + begin;
    weight.shape = {weight.shape[0], count};
    return weight;
}

/// sums[j] += a[:, j] · b[:, j]
std::vector<double> column_products(ConstView a, ConstView b) {
    std::vector<double> sums(static_cast<size_t>(a.shape[1]));
    for (int64_t i = 0; i < a.shape[0]; ++i)
        for (int64_t j = 0; j < a.shape[1]; ++j)
            sums[static_cast<size_t>(j)] +=
                static_cast<double>(a.row<float>(i)[j]) * b.row<float>(i)[j];
    return sums;
}

/// The least-squares scale, unless it is so far from the one in use that the column is all but
/// noise.
float fitted(float scale, double top, double bottom) {
    if (scale == 0 || !(bottom > 0)) return scale;
    const double ratio = top / bottom / scale;
    return ratio > 0.5 && ratio < 2 ? to_float(scale_to_f16(static_cast<float>(top / bottom)))
                                    : scale;
}

}  // namespace

WeighedError measure(Stream& s, ConstView weight, const FinalHessian* h, Rounded& r, bool fit_sv) {
    WeighedError sum;
    for (int64_t begin = 0; begin < r.n; begin += kSlab) {
        const auto scope = s.workspace().scope();
        const int64_t cols = std::min(kSlab, r.n - begin);
        const ConstView w = columns(weight, begin, cols);
        const View g = s.workspace().take(DType::f32, {r.k, cols});
        decode(s, r, begin, g);
        scale_rows(g, r.basis.su);
        const View hw = times(s, h, w), hg = times(s, h, g);
        // The error is a small difference of these; sums in double keep it exact to 1e-8 of the
        // total, a thousandth of the smallest error there is.
        const std::vector<double> ww = column_products(hw, w), gw = column_products(hw, g),
                                  gg = column_products(hg, g);
        for (size_t j = 0; j < ww.size(); ++j) {
            float& sv = r.basis.sv[static_cast<size_t>(begin) + j];
            if (fit_sv) sv = fitted(sv, gw[j], gg[j]);
            sum.total += ww[j];
            sum.error += ww[j] - 2.0 * sv * gw[j] + static_cast<double>(sv) * sv * gg[j];
        }
    }
    return sum;
}

void fit_su(Stream& s, ConstView weight, const FinalHessian& h, Rounded& r,
            std::vector<float>& scratch) {
    const int64_t k = r.k;
    scratch.assign(static_cast<size_t>(k * k), 0.0f);
    std::vector<double> b(static_cast<size_t>(k));
    for (int64_t begin = 0; begin < r.n; begin += kSlab) {
        const auto scope = s.workspace().scope();
        const int64_t cols = std::min(kSlab, r.n - begin);
        const View p = s.workspace().take(DType::f32, {k, cols});
        decode(s, r, begin, p);
        scale_columns(p, r.basis.sv.data() + begin);
        ops::gemm(s, {.a = p,
                      .b = p,
                      .c = dense(scratch.data(), DType::f32, {k, k}),
                      .transpose_b = true,
                      .beta = 1,
                      .lower = true});
        const View hw = times(s, &h, columns(weight, begin, cols));
        for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < cols; ++j)
                b[static_cast<size_t>(i)] +=
                    static_cast<double>(hw.row<float>(i)[j]) * p.row<float>(i)[j];
    }

    // Solved for the change, held back a little: a direction that the measured inputs hardly use
    // keeps the scale it has.
    double diagonal = 0;
    for (int64_t i = 0; i < k; ++i) {
        float* row = scratch.data() + i * k;
        const float* h_row = h.mean.data() + i * k;
        for (int64_t j = 0; j <= i; ++j) row[j] *= h_row[j];
        diagonal += row[i] / static_cast<double>(k);
    }
    const std::vector<float>& su = r.basis.su;
    for (int64_t i = 0; i < k; ++i) {
        const float* row = scratch.data() + i * k;
        for (int64_t j = 0; j <= i; ++j) {
            b[static_cast<size_t>(i)] -= static_cast<double>(row[j]) * su[static_cast<size_t>(j)];
            if (j < i)
                b[static_cast<size_t>(j)] -=
                    static_cast<double>(row[j]) * su[static_cast<size_t>(i)];
        }
    }
    const double hold = 1e-3 + 0.1 * h.uncertainty;
    for (int64_t i = 0; i < k; ++i) {
        float* row = scratch.data() + i * k;
        row[i] += static_cast<float>(hold * (row[i] + 0.01 * diagonal));
        if (su[static_cast<size_t>(i)] != 0) continue;
        std::fill(row, row + i, 0.0f);
        for (int64_t j = i + 1; j < k; ++j) scratch[static_cast<size_t>(j * k + i)] = 0;
        row[i] = 1;
        b[static_cast<size_t>(i)] = 0;
    }
    std::vector<double> change = b;
    if (!solve(s, scratch, change)) return;
    for (size_t i = 0; i < change.size(); ++i) {
        float& scale = r.basis.su[i];
        const double ratio = 1 + change[i] / (scale == 0 ? 1 : scale);
        if (scale != 0 && ratio > 0.5 && ratio < 2)
            scale = to_float(scale_to_f16(static_cast<float>(scale + change[i])));
    }
}

}  // namespace exl3
