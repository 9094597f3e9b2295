#include "quant/hessian.h"

#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

View block(float* h, int64_t k, int64_t row, int64_t col, int64_t rows, int64_t cols) {
    return {h + row * k + col, DType::f32, {rows, cols}, k};
}

// Cholesky factor of the lower-triangular (size, size) block at `h`, rows `stride` apart, in place.
bool factor_block(float* h, int64_t stride, int size) {
    for (int j = 0; j < size; ++j)
        for (int i = j; i < size; ++i) {
            double v = h[i * stride + j];
            for (int c = 0; c < j; ++c)
                v -= static_cast<double>(h[i * stride + c]) * h[j * stride + c];
            if (i == j) {
                if (!(v > 0) || !std::isfinite(v)) return false;
                h[j * stride + j] = static_cast<float>(std::sqrt(v));
            } else {
                h[i * stride + j] = static_cast<float>(v / h[j * stride + j]);
            }
        }
    return true;
}

// The inverse of a lower-triangular (size, size) block, dense (size, size) with zeros above.
void invert_block(const float* h, int64_t stride, int size, float* inverse) {
    std::vector<double> x(static_cast<size_t>(size));
    std::fill(inverse, inverse + size * size, 0.0f);
    for (int c = 0; c < size; ++c)
        for (int r = c; r < size; ++r) {
            double v = r == c ? 1.0 : 0.0;
            for (int m = c; m < r; ++m) v -= h[r * stride + m] * x[static_cast<size_t>(m)];
            x[static_cast<size_t>(r)] = v / h[r * stride + r];
            inverse[r * size + c] = static_cast<float>(x[static_cast<size_t>(r)]);
        }
}

// below <- below times the (size, size) matrix, or its transpose.
void multiply_right(Stream& s, View below, ConstView matrix, bool transpose) {
    if (below.shape[0] == 0) return;
    const auto scope = s.workspace().scope();
    const View copy = s.workspace().take(DType::f32, below.shape);
    s.copy(below, copy);
    ops::gemm(s, {.a = copy, .b = matrix, .c = below, .transpose_b = transpose});
}

}  // namespace

Hessian::Hessian(int64_t k) : k_(k), sum_(static_cast<size_t>(k * k)) {
    EXL3_CHECK(k > 0 && k % kHadamard == 0);
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
    h.exact_ = true;
    return h;
}

FinalHessian finalize(Hessian h) {
    const int64_t k = h.k(), count = h.count();
    FinalHessian f{.k = k};
    if (count == 0) return f;
    // Few rows leave directions unseen that other text will use: 0.1 of the diagonal at two rows
    // per channel (measured on held-out rows, docs/design/quant.md).
    if (!h.exact())
        f.uncertainty = std::min(0.2, 0.2 * static_cast<double>(k) / static_cast<double>(count));
    f.mean = std::move(h).take_sum();
    const float scale = 1.0f / static_cast<float>(count);
    for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = 0; j <= i; ++j) {
            float& v = f.mean[static_cast<size_t>(i * k + j)];
            v *= scale;
            f.mean[static_cast<size_t>(j * k + i)] = v;
        }
        f.diagonal += f.mean[static_cast<size_t>(i * k + i)] / static_cast<double>(k);
    }
    f.usable = std::isfinite(f.diagonal) && f.diagonal >= 1e-20;
    return f;
}

std::vector<float> rotated(Stream& s, const FinalHessian& h, const std::vector<float>& scale,
                           double damping) {
    std::vector<float> r(h.mean.size());
    const int64_t k = h.k;
    double diagonal = 0;
    for (int64_t i = 0; i < k; ++i) {
        const float row = scale[static_cast<size_t>(i)];
        const float* from = h.mean.data() + i * k;
        float* to = r.data() + i * k;
        for (int64_t j = 0; j < k; ++j) to[j] = from[j] * row * scale[static_cast<size_t>(j)];
        diagonal += to[i] / static_cast<double>(k);
    }
    for (int64_t i = 0; i < k; ++i)
        r[static_cast<size_t>(i * k + i)] += static_cast<float>(damping * diagonal);
    const View v = dense(r.data(), DType::f32, {k, k});
    ops::hadamard(s, {.x = v});
    ops::hadamard(s, {.x = v, .columns = true});
    return r;
}

bool cholesky(Stream& s, float* h, int64_t k) {
    constexpr int64_t kPanel = 64;
    float inverse[kPanel * kPanel];
    for (int64_t begin = 0; begin < k; begin += kPanel) {
        const int64_t end = std::min(k, begin + kPanel), size = end - begin, rest = k - end;
        float* corner = h + begin * k + begin;
        if (!factor_block(corner, k, static_cast<int>(size))) return false;
        if (rest == 0) break;
        invert_block(corner, k, static_cast<int>(size), inverse);
        const View below = block(h, k, end, begin, rest, size);
        multiply_right(s, below, dense(inverse, DType::f32, {size, size}), true);
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

double block_ldl(Stream& s, std::vector<float>& h, int64_t k) {
    // The upper triangle keeps the matrix for another try.
    std::vector<float> diagonal(static_cast<size_t>(k));
    double mean = 0;
    for (int64_t i = 0; i < k; ++i)
        mean += (diagonal[static_cast<size_t>(i)] = h[static_cast<size_t>(i * k + i)]) /
                static_cast<double>(k);
    constexpr int kTries = 10;
    for (int attempt = 0; !cholesky(s, h.data(), k); ++attempt) {
        if (attempt == kTries)
            throw Error(Errc::invalid_argument, {},
                        "the Hessian is not positive definite after ten dampings");
        for (int64_t i = 0; i < k; ++i) {
            for (int64_t j = 0; j < i; ++j)
                h[static_cast<size_t>(i * k + j)] = h[static_cast<size_t>(j * k + i)];
            h[static_cast<size_t>(i * k + i)] = diagonal[static_cast<size_t>(i)] +=
                static_cast<float>(0.05 * mean);
        }
    }
    double trace = 0;
    float inverse[kTileSize];
    for (int64_t begin = 0; begin < k; begin += kTile) {
        const float* corner = h.data() + begin * k + begin;
        for (int r = 0; r < kTile; ++r)
            for (int c = 0; c <= r; ++c)
                trace += static_cast<double>(corner[r * k + c]) * corner[r * k + c];
        invert_block(corner, k, kTile, inverse);
        multiply_right(s, block(h.data(), k, begin + kTile, begin, k - begin - kTile, kTile),
                       dense(inverse, DType::f32, {kTile, kTile}), false);
    }
    return trace;
}

bool solve(Stream& s, std::vector<float>& h, std::vector<double>& b) {
    const auto k = static_cast<int64_t>(b.size());
    if (!cholesky(s, h.data(), k)) return false;
    for (int64_t i = 0; i < k; ++i) {
        const float* row = h.data() + i * k;
        double v = b[static_cast<size_t>(i)];
        for (int64_t j = 0; j < i; ++j) v -= row[j] * b[static_cast<size_t>(j)];
        b[static_cast<size_t>(i)] = v / row[i];
    }
    for (int64_t i = k - 1; i >= 0; --i) {
        const float* row = h.data() + i * k;
        const double v = b[static_cast<size_t>(i)] /= row[i];
        for (int64_t j = 0; j < i; ++j) b[static_cast<size_t>(j)] -= row[j] * v;
    }
    return true;
}

}  // namespace exl3
