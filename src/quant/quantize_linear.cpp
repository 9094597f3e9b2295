#include "quant/quantize_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "ops/ops.h"
#include "quant/tiles.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

using Matrix = std::vector<float>;  // row-major, sizes known from context

View view(Matrix& m, int64_t rows, int64_t cols) {
    return dense(m.data(), DType::f32, {rows, cols});
}

/// The matrix in the basis in which it is rounded: weight = diag(su) H target H diag(sv).
struct Regularized {
    Matrix target;              // (k, n), rms near kCodebookScale
    std::vector<float> su, sv;  // (k), (n); sv is 0 for columns that are all zero
};

Regularized regularize(Stream& s, ConstView weight, uint64_t seed) {
    const int64_t k = weight.shape[0], n = weight.shape[1];
    Regularized r{.target = Matrix(static_cast<size_t>(k * n)),
                  .su = std::vector<float>(static_cast<size_t>(k)),
                  .sv = std::vector<float>(static_cast<size_t>(n))};
    std::vector<double> column(static_cast<size_t>(n));
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) {
            const double v = weight.row<float>(i)[j];
            if (!std::isfinite(v))
                throw Error(Errc::invalid_argument, {},
                            fmt::format("weight at input {}, output {} is not finite", i, j));
            column[static_cast<size_t>(j)] += v * v;
        }
    double mean = 0;
    for (double& c : column) mean += (c = std::sqrt(c / static_cast<double>(k)));
    mean /= static_cast<double>(n);

    Random random(noise64(seed, 0x5167));
    for (int64_t j = 0; j < n; ++j) {
        const double c = mean > 1e-30 ? column[static_cast<size_t>(j)] / mean : 1;
        const bool zero = column[static_cast<size_t>(j)] < 1e-30;
        const bool minus = random.coin();
        r.sv[static_cast<size_t>(j)] = zero ? 0 : static_cast<float>(minus ? -c : c);
    }
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) {
            const float scale = r.sv[static_cast<size_t>(j)];
            r.target[static_cast<size_t>(i * n + j)] =
                scale == 0 ? 0 : weight.row<float>(i)[j] / scale;
        }
    ops::hadamard(s, {.x = view(r.target, k, n)});
    for (int64_t i = 0; i < k; ++i) {
        float* row = r.target.data() + i * n;
        double rms = 0;
        for (int64_t j = 0; j < n; ++j) rms += static_cast<double>(row[j]) * row[j];
        rms = std::sqrt(rms / static_cast<double>(n));
        const bool minus = random.coin();
        // A row of zeros keeps an ordinary scale: its targets are zero whatever it is.
        const double scale = (rms > 1e-30 ? rms : 0.1) / kCodebookScale;
        const float su = static_cast<float>(minus ? -scale : scale);
        r.su[static_cast<size_t>(i)] = su;
        for (int64_t j = 0; j < n; ++j) row[j] /= su;
    }
    ops::hadamard(s, {.x = view(r.target, k, n), .columns = true});
    return r;
}

double mean_squared_error(Stream& s, const Matrix& tiles, double g, const QuantParams& p) {
    const auto count = static_cast<int64_t>(tiles.size()) / kTileSize;
    Matrix scaled(tiles.size()), values(tiles.size());
    std::vector<uint16_t> states(tiles.size());
    for (size_t i = 0; i < tiles.size(); ++i) scaled[i] = static_cast<float>(tiles[i] * g);
    const Shape shape = {count, kTileSize};
    ops::encode_tiles(s, {.target = dense(scaled.data(), DType::f32, shape),
                          .states = dense(states.data(), DType::u16, shape),
                          .values = dense(values.data(), DType::f32, shape),
                          .codebook = p.codebook,
                          .bits = p.bits});
    double sum = 0;
    for (size_t i = 0; i < tiles.size(); ++i) sum += std::pow(values[i] / g - tiles[i], 2);
    return sum;
}

// The best scale for Gaussian targets, as a share of the codebook's rms (measured,
// docs/design/quant.md).
constexpr std::array<double, 9> kGaussianScale = {0, 1.18, 1.0, 0.97, 0.94, 0.94, 0.96, 0.95, 0.92};

/// What the targets are multiplied by before rounding, found on a sample of tiles.
double find_scale(Stream& s, const Matrix& target, int64_t k, int64_t n, const QuantParams& p) {
    const Matrix sample = sample_tiles(target, k, n);
    const double rms = p.codebook.kind == CodebookKind::mul1 ? 1.0 : kCodebookScale;
    const double start = kGaussianScale[static_cast<size_t>(p.bits)] * rms / kCodebookScale;
    constexpr std::array<double, 5> kSteps = {-0.12, -0.06, 0, 0.06, 0.12};
    std::array<double, 5> error{};
    for (size_t i = 0; i < kSteps.size(); ++i)
        error[i] = mean_squared_error(s, sample, start * (1 + kSteps[i]), p);
    const auto best =
        static_cast<size_t>(std::min_element(error.begin(), error.end()) - error.begin());
    double step = kSteps[best];
    if (best > 0 && best + 1 < kSteps.size()) {
        const double a = error[best - 1], b = error[best], c = error[best + 1];
        const double curve = a - 2 * b + c;
        if (curve > 0) step += 0.06 * std::clamp(0.5 * (a - c) / curve, -0.5, 0.5);
    }
    return start * (1 + step);
}

/// A rounded matrix in the basis of its targets.
struct Rounded {
    Matrix value;                  // (k, n): decoded values
    std::vector<uint16_t> states;  // (k/16, n/16, 256)
};

/// Rounds a scaled target from its last row of tiles to its first. With L, the block factor of the
/// metric, every row of tiles first takes up what the rows after it left over (LDLQ).
class Ldlq {
public:
    Ldlq(Stream& s, const Matrix& target, int64_t k, int64_t n, const Matrix* factor,
         const QuantParams& p)
        : s_(s), p_(p), k_(k), n_(n), target_(target), factor_(factor) {}

    Rounded run() {
        out_.value.resize(target_.size());
        out_.states.resize(target_.size());
        error_.assign(target_.size(), 0.0f);
        carried_.assign(target_.size(), 0.0f);
        for (int64_t end = k_; end > 0; end -= kSpan) {
            const int64_t begin = std::max<int64_t>(0, end - kSpan);
            for (int64_t row = end - kTile; row >= begin; row -= kTile) round_row(row, end);
            if (factor_ && begin > 0) carry(begin, end);
        }
        return std::move(out_);
    }

private:
    // Rows whose feedback is applied one row of tiles at a time; further back it goes by one gemm.
    static constexpr int64_t kSpan = 128;

    ConstView factor(int64_t row, int64_t col, int64_t rows, int64_t cols) const {
        return {factor_->data() + row * k_ + col, DType::f32, {rows, cols}, k_};
    }

    void round_row(int64_t row, int64_t span_end) {
        const int64_t tiles = n_ / kTile, below = span_end - row - kTile;
        Matrix x(target_.begin() + row * n_, target_.begin() + (row + kTile) * n_);
        for (size_t i = 0; i < x.size(); ++i) x[i] += carried_[static_cast<size_t>(row * n_) + i];
        if (factor_ && below > 0)
            ops::gemm(s_, {.a = factor(row + kTile, row, below, kTile),
                           .b = dense(error_.data() + (row + kTile) * n_, DType::f32, {below, n_}),
                           .c = view(x, kTile, n_),
                           .transpose_a = true,
                           .beta = 1});
        Matrix gathered(x.size()), decoded(x.size());
        gather_tiles(x.data(), tiles, gathered.data());
        const Shape shape = {tiles, kTileSize};
        ops::encode_tiles(s_, {.target = dense(gathered.data(), DType::f32, shape),
                               .states = dense(out_.states.data() + row * n_, DType::u16, shape),
                               .values = dense(decoded.data(), DType::f32, shape),
                               .codebook = p_.codebook,
                               .bits = p_.bits});
        float* value = out_.value.data() + row * n_;
        scatter_tiles(decoded.data(), tiles, value);
        for (int64_t i = 0; i < kTile * n_; ++i)
            error_[static_cast<size_t>(row * n_ + i)] =
                target_[static_cast<size_t>(row * n_ + i)] - value[i];
    }

    void carry(int64_t begin, int64_t end) {
        ops::gemm(s_, {.a = factor(begin, 0, end - begin, begin),
                       .b = dense(error_.data() + begin * n_, DType::f32, {end - begin, n_}),
                       .c = dense(carried_.data(), DType::f32, {begin, n_}),
                       .transpose_a = true,
                       .beta = 1});
    }

    Stream& s_;
    const QuantParams& p_;
    int64_t k_, n_;
    const Matrix& target_;
    const Matrix* factor_;
    Matrix error_, carried_;  // target - value; feedback from finished spans
    Rounded out_;
};

double weighted(const Matrix& a, const Matrix& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
}

Matrix times(Stream& s, const FinalHessian* h, Matrix& x, int64_t k, int64_t n) {
    if (!h) return x;
    Matrix y(x.size());
    ops::gemm(
        s,
        {.a = dense(h->mean.data(), DType::f32, {k, k}), .b = view(x, k, n), .c = view(y, k, n)});
    return y;
}

f16 nonzero_f16(float v) {
    // A scale that underflows would silence its channel.
    const f16 h = to_f16(std::clamp(v, -65504.0f, 65504.0f));
    return (h.bits & 0x7fff) == 0 ? f16{static_cast<uint16_t>(h.bits | 1)} : h;
}

/// One draw of signs, rounded, with f16 scales and its error.
struct Attempt {
    QuantResult result;
    double error = 0;
};

// Output scales that fit the rounded matrix best in the metric, column by column: the least
// squares solution <W_j, G_j> / <G_j, G_j> with G the matrix before its output scale.
void fit_output_scales(const Matrix& hg, const Matrix& hw_or_w, const Matrix& g, int64_t k,
                       int64_t n, std::vector<float>& sv) {
    std::vector<double> top(static_cast<size_t>(n)), bottom(static_cast<size_t>(n));
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) {
            const auto at = static_cast<size_t>(i * n + j);
            top[static_cast<size_t>(j)] += static_cast<double>(hg[at]) * hw_or_w[at];
            bottom[static_cast<size_t>(j)] += static_cast<double>(hg[at]) * g[at];
        }
    for (int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<size_t>(j);
        if (sv[at] == 0 || !(bottom[at] > 0)) continue;
        const double fit = top[at] / bottom[at];
        // Far from the first scale means the column is all but noise; keep what it had.
        if (fit / sv[at] > 0.5 && fit / sv[at] < 2) sv[at] = static_cast<float>(fit);
    }
}

Attempt attempt(Stream& s, ConstView weight, const FinalHessian* h, const QuantParams& p,
                uint64_t seed) {
    const int64_t k = weight.shape[0], n = weight.shape[1];
    Regularized r = regularize(s, weight, seed);
    Matrix factor;
    if (h) {
        std::vector<float> metric = r.su;
        if (p.plain)
            for (float& v : metric) v = v < 0 ? -1.0f : 1.0f;
        factor = rotated(s, *h, metric);
        block_ldl(s, factor, k);
    }
    const auto g = static_cast<float>(find_scale(s, r.target, k, n, p));
    for (float& v : r.target) v *= g;
    Rounded rounded = Ldlq(s, r.target, k, n, h ? &factor : nullptr, p).run();

    Attempt a;
    QuantResult& q = a.result;
    q.trellis.resize(static_cast<size_t>(k / kTile * (n / kTile) * tile_words(p.bits)));
    pack_tiles(rounded.states, p.bits, q.trellis);
    for (const float v : r.su) q.suh.push_back(nonzero_f16(v / g));

    // The matrix as a reader will see it, but for the output scales.
    Matrix& inner = rounded.value;
    ops::hadamard(s, {.x = view(inner, k, n), .columns = true});
    ops::hadamard(s, {.x = view(inner, k, n)});
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j)
            inner[static_cast<size_t>(i * n + j)] *= to_float(q.suh[static_cast<size_t>(i)]);
    const Matrix hg = times(s, h, inner, k, n);
    Matrix source(static_cast<size_t>(k * n));
    for (int64_t i = 0; i < k; ++i)
        std::copy(weight.row<float>(i), weight.row<float>(i) + n, source.data() + i * n);
    if (p.refit && !p.plain) fit_output_scales(hg, source, inner, k, n, r.sv);
    for (const float v : r.sv) q.svh.push_back(v == 0 ? f16{} : nonzero_f16(v));

    Matrix error = source;
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j)
            error[static_cast<size_t>(i * n + j)] -=
                inner[static_cast<size_t>(i * n + j)] * to_float(q.svh[static_cast<size_t>(j)]);
    a.error = weighted(error, times(s, h, error, k, n));
    const double total = weighted(source, times(s, h, source, k, n));
    q.proxy_err = a.error / std::max(total, 1e-30);
    return a;
}

// From 6 bits on a few targets beyond the codebook's largest value make much of the error, and
// which they are is the signs' doing.
int draws_for(const QuantParams& p) {
    if (p.draws > 0) return p.draws;
    if (p.plain || p.bits <= 5) return 1;
    return p.bits == 8 ? 4 : 2;
}

}  // namespace

QuantResult quantize_linear(Stream& s, ConstView weight, const FinalHessian* hessian,
                            const QuantParams& params) {
    EXL3_CHECK(weight.dtype == DType::f32 && weight.shape.rank == 2 && weight.shape[0] % 128 == 0 &&
               weight.shape[1] % 128 == 0);
    const FinalHessian* h = hessian && hessian->usable ? hessian : nullptr;
    EXL3_CHECK(!h || h->k == weight.shape[0]);
    std::optional<Attempt> best;
    for (int draw = 0; draw < draws_for(params); ++draw) {
        Attempt a =
            attempt(s, weight, h, params, noise64(params.seed, static_cast<uint64_t>(draw)));
        if (!best || a.error < best->error) best = std::move(a);
    }
    return std::move(best->result);
}

}  // namespace exl3
