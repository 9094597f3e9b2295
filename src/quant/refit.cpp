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

/// Moves scales to the solution of a x = b, a the symmetric normal equations in their lower
/// triangle, solved for the change and held back a little: a direction that the measured inputs
/// hardly use keeps the scale it has. Zeros stay.
void move_scales(Stream& s, std::vector<float>& a, std::vector<double> b, double hold,
                 std::vector<float>& scales) {
    const auto n = static_cast<int64_t>(scales.size());
    double diagonal = 0;
    for (int64_t i = 0; i < n; ++i)
        diagonal += a[static_cast<size_t>(i * n + i)] / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) {
        const float* row = a.data() + i * n;
        for (int64_t j = 0; j <= i; ++j) {
            b[static_cast<size_t>(i)] -=
                static_cast<double>(row[j]) * scales[static_cast<size_t>(j)];
            if (j < i)
                b[static_cast<size_t>(j)] -=
                    static_cast<double>(row[j]) * scales[static_cast<size_t>(i)];
        }
    }
    for (int64_t i = 0; i < n; ++i) {
        float* row = a.data() + i * n;
        row[i] += static_cast<float>(hold * (row[i] + 0.01 * diagonal));
        if (scales[static_cast<size_t>(i)] != 0) continue;
        std::fill(row, row + i, 0.0f);
        for (int64_t j = i + 1; j < n; ++j) a[static_cast<size_t>(j * n + i)] = 0;
        row[i] = 1;
        b[static_cast<size_t>(i)] = 0;
    }
    if (!solve(s, a, b)) return;
    for (size_t i = 0; i < b.size(); ++i) {
        float& scale = scales[i];
        const double ratio = 1 + b[i] / (scale == 0 ? 1 : scale);
        if (scale != 0 && ratio > 0.5 && ratio < 2)
            scale = to_float(scale_to_f16(static_cast<float>(scale + b[i])));
    }
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

void fit_su(Stream& s, ConstView weight, const FinalHessian& h, const FinalHessian* out, Rounded& r,
            std::vector<float>& scratch) {
    const int64_t k = r.k;
    EXL3_CHECK(!out || r.n <= kSlab);
    scratch.assign(static_cast<size_t>(k * k), 0.0f);
    std::vector<double> b(static_cast<size_t>(k));
    for (int64_t begin = 0; begin < r.n; begin += kSlab) {
        const auto scope = s.workspace().scope();
        const int64_t cols = std::min(kSlab, r.n - begin);
        const View p = s.workspace().take(DType::f32, {k, cols});
        decode(s, r, begin, p);
        scale_columns(p, r.basis.sv.data() + begin);
        View weighed = p;  // P O
        if (out) {
            weighed = s.workspace().take(DType::f32, {k, cols});
            ops::gemm(
                s, {.a = p, .b = dense(out->mean.data(), DType::f32, {cols, cols}), .c = weighed});
        }
        ops::gemm(s, {.a = weighed,
                      .b = p,
                      .c = dense(scratch.data(), DType::f32, {k, k}),
                      .transpose_b = true,
                      .beta = 1,
                      .lower = true});
        const View hw = times(s, &h, columns(weight, begin, cols));
        for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < cols; ++j)
                b[static_cast<size_t>(i)] +=
                    static_cast<double>(hw.row<float>(i)[j]) * weighed.row<float>(i)[j];
    }
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j <= i; ++j)
            scratch[static_cast<size_t>(i * k + j)] *= h.mean[static_cast<size_t>(i * k + j)];
    move_scales(s, scratch, std::move(b), 1e-3 + 0.1 * h.uncertainty, r.basis.su);
}

void fit_sv(Stream& s, ConstView weight, const FinalHessian& h, const FinalHessian& out,
            Rounded& r) {
    const int64_t n = r.n;
    EXL3_CHECK(n <= kSlab);
    const auto scope = s.workspace().scope();
    const View g = s.workspace().take(DType::f32, {r.k, n});
    decode(s, r, 0, g);
    scale_rows(g, r.basis.su);
    const View hg = times(s, &h, g);
    std::vector<float> a(static_cast<size_t>(n * n)), c(a.size());
    const View square = dense(a.data(), DType::f32, {n, n}),
               cross = dense(c.data(), DType::f32, {n, n});
    ops::gemm(s, {.a = hg, .b = g, .c = square, .transpose_a = true, .lower = true});
    ops::gemm(s, {.a = hg, .b = weight, .c = cross, .transpose_a = true});
    s.synchronize();
    std::vector<double> b(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
            const auto at = static_cast<size_t>(i * n + j);
            b[static_cast<size_t>(i)] += static_cast<double>(c[at]) * out.mean[at];
            if (j <= i) a[at] *= out.mean[at];
        }
    move_scales(s, a, std::move(b), 1e-3 + 0.1 * (h.uncertainty + out.uncertainty), r.basis.sv);
}

}  // namespace exl3
