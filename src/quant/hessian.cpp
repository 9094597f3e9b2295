#include "quant/hessian.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/ops.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

// Columns of one step of the blocked Cholesky factorization: the panel is done by plain loops, the
// rest by gemm.
constexpr int64_t kPanel = 64;

// Factorizes the (kPanel, kPanel) block at `begin` and solves the rows below against it.
bool factor_panel(float* h, int64_t k, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
        float* row_j = h + j * k;
        double diagonal = row_j[j];
        for (int64_t c = begin; c < j; ++c) diagonal -= static_cast<double>(row_j[c]) * row_j[c];
        if (!(diagonal > 0) || !std::isfinite(diagonal)) return false;
        const double root = std::sqrt(diagonal);
        row_j[j] = static_cast<float>(root);
        for (int64_t i = j + 1; i < k; ++i) {
            float* row_i = h + i * k;
            float dot = 0;
            for (int64_t c = begin; c < j; ++c) dot += row_i[c] * row_j[c];
            row_i[j] = static_cast<float>((row_i[j] - dot) / root);
        }
    }
    return true;
}

View block(float* h, int64_t k, int64_t row, int64_t col, int64_t rows, int64_t cols) {
    return {h + row * k + col, DType::f32, {rows, cols}, k};
}

// The inverse of the lower-triangular (16, 16) block at (begin, begin).
void invert_diagonal_block(const float* h, int64_t k, int64_t begin, double* inverse) {
    std::fill(inverse, inverse + kTile * kTile, 0.0);
    for (int c = 0; c < kTile; ++c)
        for (int r = c; r < kTile; ++r) {
            double v = r == c ? 1.0 : 0.0;
            for (int m = c; m < r; ++m)
                v -= h[(begin + r) * k + begin + m] * inverse[m * kTile + c];
            inverse[r * kTile + c] = v / h[(begin + r) * k + begin + r];
        }
}

// L[:, block] = C[:, block] C_block^-1 below the block; zero on and above it.
void divide_by_diagonal_blocks(float* h, int64_t k) {
    double inverse[kTile * kTile];
    for (int64_t begin = 0; begin < k; begin += kTile) {
        invert_diagonal_block(h, k, begin, inverse);
        for (int64_t i = begin + kTile; i < k; ++i) {
            float* row = h + i * k + begin;
            double out[kTile] = {};
            for (int m = 0; m < kTile; ++m)
                for (int c = 0; c <= m; ++c) out[c] += row[m] * inverse[m * kTile + c];
            for (int c = 0; c < kTile; ++c) row[c] = static_cast<float>(out[c]);
        }
    }
    for (int64_t i = 0; i < k; ++i) std::fill(h + i * k + i / kTile * kTile, h + (i + 1) * k, 0.0f);
}

}  // namespace

Hessian::Hessian(int64_t k) : k_(k), sum_(static_cast<size_t>(k * k)) {
    EXL3_CHECK(k > 0 && k % 128 == 0);
}

void Hessian::add(Stream& s, ConstView x) {
    EXL3_CHECK(x.dtype == DType::f32 && x.shape[1] <= k_);
    const auto scope = s.workspace().scope();
    const View rows = s.workspace().take(DType::f32, {x.shape[0], k_});
    int64_t kept = 0;
    for (int64_t r = 0; r < x.shape[0]; ++r) {
        const float* from = x.row<float>(r);
        const int64_t width = x.shape[1];
        if (!std::all_of(from, from + width, [](float v) { return std::isfinite(v); })) {
            ++dropped_;
            continue;
        }
        float* to = rows.row<float>(kept++);
        std::copy(from, from + width, to);
        std::fill(to + width, to + k_, 0.0f);
    }
    if (kept == 0) return;
    count_ += kept;
    const View used = slice_rows(rows, 0, kept);
    ops::gemm(s, {.a = used,
                  .b = used,
                  .c = dense(sum_.data(), DType::f32, {k_, k_}),
                  .transpose_a = true,
                  .beta = 1,
                  .lower = true});
}

Hessian Hessian::from_mean(ConstView mean) {
    Hessian h(mean.shape[0]);
    for (int64_t r = 0; r < h.k_; ++r)
        std::copy(mean.row<float>(r), mean.row<float>(r) + h.k_, h.sum_.data() + r * h.k_);
    h.count_ = 1;
    return h;
}

FinalHessian finalize(Hessian h, const FinalizeParams& params) {
    FinalHessian f{.k = h.k()};
    if (h.count() == 0) return f;
    f.mean = h.sum();
    const int64_t k = f.k;
    const float scale = 1.0f / static_cast<float>(h.count());
    double diagonal = 0;
    for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = 0; j <= i; ++j) {
            float& v = f.mean[static_cast<size_t>(i * k + j)];
            v *= scale;
            f.mean[static_cast<size_t>(j * k + i)] = v;
        }
        diagonal += f.mean[static_cast<size_t>(i * k + i)];
    }
    diagonal /= static_cast<double>(k);
    if (!std::isfinite(diagonal) || diagonal < 1e-20) return f;
    for (int64_t i = 0; i < k; ++i)
        f.mean[static_cast<size_t>(i * k + i)] += static_cast<float>(params.damping * diagonal);
    f.usable = true;
    return f;
}

std::vector<float> rotated(Stream& s, const FinalHessian& h, const std::vector<float>& scale) {
    std::vector<float> r(h.mean.size());
    const int64_t k = h.k;
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < k; ++j)
            r[static_cast<size_t>(i * k + j)] = h.mean[static_cast<size_t>(i * k + j)] *
                                                scale[static_cast<size_t>(i)] *
                                                scale[static_cast<size_t>(j)];
    const View v = dense(r.data(), DType::f32, {k, k});
    ops::hadamard(s, {.x = v});
    ops::hadamard(s, {.x = v, .columns = true});
    return r;
}

bool cholesky(Stream& s, float* h, int64_t k) {
    for (int64_t begin = 0; begin < k; begin += kPanel) {
        const int64_t end = std::min(k, begin + kPanel), rest = k - end;
        if (!factor_panel(h, k, begin, end)) return false;
        if (rest == 0) break;
        const View below = block(h, k, end, begin, rest, end - begin);
        ops::gemm(s, {.a = below,
                      .b = below,
                      .c = block(h, k, end, end, rest, rest),
                      .transpose_b = true,
                      .alpha = -1,
                      .beta = 1,
                      .lower = true});
    }
    return true;
}

void block_ldl(Stream& s, std::vector<float>& h, int64_t k) {
    double diagonal = 0;
    for (int64_t i = 0; i < k; ++i) diagonal += h[static_cast<size_t>(i * k + i)];
    const auto extra = static_cast<float>(0.05 * diagonal / static_cast<double>(k));
    constexpr int kTries = 10;
    for (int attempt = 0; attempt <= kTries; ++attempt) {
        std::vector<float> c = h;
        for (int64_t i = 0; i < k; ++i)
            c[static_cast<size_t>(i * k + i)] += extra * static_cast<float>(attempt);
        if (!cholesky(s, c.data(), k)) continue;
        h = std::move(c);
        divide_by_diagonal_blocks(h.data(), k);
        return;
    }
    throw Error(Errc::invalid_argument, {},
                "the Hessian is not positive definite after ten dampings");
}

}  // namespace exl3
