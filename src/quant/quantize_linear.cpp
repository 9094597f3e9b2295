#include "quant/quantize_linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/random.h"
#include "ops/ops.h"
#include "quant/basis.h"
#include "quant/refit.h"
#include "quant/row_scales.h"
#include "quant/target_scale.h"
#include "quant/tiles.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

constexpr uint64_t kColumnSigns = 0xc0;  // streams of noise64 that differ from the rows'

/// Scales of the output channels. The error of a column is in proportion to the square of its scale
/// and, after normalisation, the Hadamard transform spreads the load of a block evenly: sum sv^2 is
/// least for sum (rms / sv)^2 given where sv is proportional to the square root of rms.
std::vector<float> column_scales(const std::vector<double>& rms, double power) {
    std::vector<float> sv(rms.size());
    double mean = 0, count = 0;
    for (const double c : rms) {
        mean += c;
        count += c > 0;
    }
    if (mean == 0) return sv;
    mean /= count;
    std::vector<double> relative(rms.size());
    for (size_t j = 0; j < rms.size(); ++j) {
        relative[j] = rms[j] / mean;
        sv[j] = static_cast<float>(std::pow(relative[j], power));
    }
    normalize_blocks(relative, sv);
    // The rows' scales carry the size of the matrix; where f16 would lose their last bits the
    // columns take half of it.
    const int exponent = std::ilogb(mean);
    if (exponent < -9 || exponent > 6)
        for (float& v : sv) v = std::ldexp(v, exponent / 2);
    return sv;
}

double excess(ConstView target, double scale, float limit) {
    double sum = 0;
    for (int64_t i = 0; i < target.shape[0]; ++i) {
        const float* row = target.row<float>(i);
        for (int64_t j = 0; j < target.shape[1]; ++j) {
            const double over = std::fabs(row[j]) * scale - limit;
            if (over > 0) sum += over * over;
        }
    }
    return sum;
}

/// Signs of the output channels. From 5 bits on a target out of the codebook's reach costs as much
/// as hundreds within it, and which targets are is the signs' doing: of several draws every block
/// of 128 columns keeps its best.
void choose_column_signs(Stream& s, ConstView weight, Basis& basis, double scale,
                         const QuantParams& p) {
    constexpr int kDraws = 8;
    const int draws = p.bits >= 5 ? kDraws : 1;
    const auto scope = s.workspace().scope();
    const View target = s.workspace().take(DType::f32, {weight.shape[0], kHadamard});
    for (size_t begin = 0; begin < basis.sv.size(); begin += kHadamard) {
        const auto at = basis.sv.begin() + static_cast<int64_t>(begin);
        const std::vector<float> plain(at, at + kHadamard);
        std::vector<float> best;
        double least = 0;
        for (int draw = 0; draw < draws; ++draw) {
            std::vector<float> sv = plain;
            draw_signs(sv, noise64(p.seed, kColumnSigns + begin, static_cast<uint64_t>(draw)));
            std::copy(sv.begin(), sv.end(), at);
            if (draws > 1) to_inner(s, weight, basis, static_cast<int64_t>(begin), target);
            const double over = draws > 1 ? excess(target, scale, reach(p.codebook)) : 0;
            if (draw == 0 || over < least) {
                least = over;
                best = sv;
            }
            if (over == 0) break;
        }
        std::copy(best.begin(), best.end(), at);
    }
}

/// Fourth moment over the squared second, 3 for normal data.
double kurtosis(ConstView x) {
    double second = 0, fourth = 0;
    for (int64_t i = 0; i < x.shape[0]; ++i)
        for (int64_t j = 0; j < x.shape[1]; ++j) {
            const double v = x.row<float>(i)[j];
            second += v * v;
            fourth += v * v * v * v;
        }
    return fourth * static_cast<double>(x.shape.numel()) / std::max(second * second, 1e-30);
}

void multiply(std::vector<float>& x, double factor) {
    for (float& v : x) v = static_cast<float>(v * factor);
}

/// Rounds column slab by column slab; errors of columns do not meet, unless the outputs have a
/// factor too.
void round_all(Stream& s, ConstView weight, const Basis& basis, const std::vector<float>& factor,
               const std::vector<float>& out_factor, Rounded& r) {
    r.states.resize(static_cast<size_t>(r.k * r.n));
    if (!out_factor.empty()) {
        const auto scope = s.workspace().scope();
        const View target = s.workspace().take(DType::f32, {r.k, r.n});
        to_inner(s, weight, basis, 0, target);
        round_two_sided(s, target, factor, out_factor, r.kind, r.states.data(), r.n * kTile);
        return;
    }
    for (int64_t begin = 0; begin < r.n; begin += kSlab) {
        const auto scope = s.workspace().scope();
        const View target = s.workspace().take(DType::f32, {r.k, std::min(kSlab, r.n - begin)});
        to_inner(s, weight, basis, begin, target);
        round_to_trellis(s, target, factor, r.kind, r.states.data() + begin * kTile, r.n * kTile);
    }
}

/// Factorizations of (k, k) that cost a few percent of encoding (k, n) on the CPU, where a
/// factorization takes 4.4e-12 k^3 seconds of a core and encoding 1.7e-6 k n.
int factorization_budget(int64_t k, int64_t n) {
    return static_cast<int>(std::min<int64_t>(22000 * n / (k * k), 6));
}

// Above, signs that keep targets within the codebook's reach are worth more than a second metric.
constexpr int kTwoSidedBits = 5;

std::vector<double> relative(std::vector<double> rms) {
    double sum = 0, count = 0;
    for (const double v : rms) {
        sum += v;
        count += v > 0;
    }
    if (count > 0)
        for (double& v : rms) v *= count / sum;
    return rms;
}

/// One draw of signs, rounded.
Rounded round_once(Stream& s, ConstView weight, const FinalHessian* h, const QuantParams& p,
                   WeighedError& error) {
    Rounded r{.kind = {p.bits, p.codebook}, .k = weight.shape[0], .n = weight.shape[1]};
    const FinalHessian* out = h && p.bits <= kTwoSidedBits ? p.output : nullptr;
    Basis basis{.sv = column_scales(column_rms(weight, p.name), p.column_power)};
    const int budget = factorization_budget(r.k, r.n);
    RowScales columns;
    if (out) {
        columns =
            choose_row_scales(s, out, relative(column_rms(weight, p.name)), gaussian_error(p.bits),
                              factorization_budget(r.n, r.k), noise64(p.seed, kColumnSigns));
        basis.sv = columns.scale;
    }
    RowScales rows = choose_row_scales(s, h, row_rms(s, weight, basis.sv), gaussian_error(p.bits),
                                       std::max(budget, 1), p.seed);
    double scale = gaussian_scale(r.kind) / std::sqrt(rows.growth * columns.growth);
    basis.su = rows.scale;
    if (!out) choose_column_signs(s, weight, basis, scale, p);
    {
        const auto scope = s.workspace().scope();
        const View target = s.workspace().take(DType::f32, {r.k, std::min(kSlab, r.n)});
        to_inner(s, weight, basis, 0, target);
        if (p.bits >= 6 || std::fabs(kurtosis(target) - 3) > 0.2)
            scale = refine_scale(s, target, scale, r.kind);
    }
    multiply(basis.su, 1 / scale);
    round_to_f16(basis);
    round_all(s, weight, basis, rows.factor, columns.factor, r);
    r.basis = std::move(basis);
    if (p.refit && h && budget >= 1) fit_su(s, weight, *h, out, r, rows.factor);
    if (p.refit && out) fit_sv(s, weight, *h, *out, r);
    error = measure(s, weight, h, r, p.refit && !out);
    return r;
}

/// The published algorithm: scales that make every channel's rms equal, a metric of signs alone,
/// damping of 0.025, and rounding of the scales to f16 that nothing makes up for.
Rounded round_plainly(Stream& s, ConstView weight, const FinalHessian* h, const QuantParams& p,
                      WeighedError& error) {
    constexpr double kDamping = 0.025;
    Rounded r{.kind = {p.bits, p.codebook}, .k = weight.shape[0], .n = weight.shape[1]};
    std::vector<double> rms = column_rms(weight, p.name);
    double mean = 0;
    for (const double c : rms) mean += c / static_cast<double>(r.n);
    Basis basis;
    for (const double c : rms)
        basis.sv.push_back(c < 1e-30 ? 0.0f : static_cast<float>(mean > 1e-30 ? c / mean : 1));
    draw_signs(basis.sv, noise64(p.seed, kColumnSigns));

    rms = row_rms(s, weight, basis.sv);
    std::vector<float> signs(rms.size(), 1.0f), factor;
    draw_signs(signs, p.seed);
    for (size_t i = 0; i < rms.size(); ++i)
        basis.su.push_back(signs[i] *
                           static_cast<float>((rms[i] > 0 ? rms[i] : 0.1) / kCodebookScale));
    if (h) {
        factor = rotated(s, *h, signs, kDamping);
        block_ldl(s, factor, r.k);
    }
    {
        const auto scope = s.workspace().scope();
        const View target = s.workspace().take(DType::f32, {r.k, r.n});
        to_inner(s, weight, basis, 0, target);
        multiply(basis.su, 1 / grid_scale(s, target, r.kind));
    }
    round_all(s, weight, basis, factor, {}, r);
    round_to_f16(basis);
    r.basis = std::move(basis);
    error = measure(s, weight, h, r, false);
    return r;
}

std::vector<uint16_t> packed(const Rounded& r) {
    std::vector<uint16_t> words(r.states.size() / kTileSize *
                                static_cast<size_t>(tile_words(r.kind.bits)));
    pack_tiles(r.states, r.kind.bits, words);
    // What was measured is what a reader will see only if every ring is closed.
    const auto each = static_cast<size_t>(tile_words(r.kind.bits));
    std::array<uint16_t, kTileSize> states{};
    for (size_t t = 0; t < r.states.size() / kTileSize; ++t) {
        unpack_states(std::span(words).subspan(t * each, each), states, r.kind.bits);
        EXL3_CHECK(std::equal(states.begin(), states.end(), r.states.begin() + t * kTileSize),
                   "a tile does not decode to what it was encoded as");
    }
    return words;
}

}  // namespace

QuantResult quantize_linear(Stream& s, ConstView weight, const FinalHessian* hessian,
                            const QuantParams& params) {
    EXL3_CHECK(weight.dtype == DType::f32 && weight.shape.rank == 2 &&
               weight.shape[0] % kHadamard == 0 && weight.shape[1] % kHadamard == 0);
    const FinalHessian* h = hessian && hessian->usable ? hessian : nullptr;
    EXL3_CHECK(!h || h->k == weight.shape[0]);
    std::optional<Rounded> best;
    WeighedError least;
    for (int draw = 0; draw < std::max(params.draws, 1); ++draw) {
        QuantParams p = params;
        p.seed = noise64(params.seed, static_cast<uint64_t>(draw));
        WeighedError error;
        Rounded r = (p.plain ? round_plainly : round_once)(s, weight, h, p, error);
        if (best && error.error >= least.error) continue;
        best = std::move(r);
        least = error;
    }
    QuantResult q{.trellis = packed(*best)};
    for (const float v : best->basis.su) q.suh.push_back(to_f16(v));
    for (const float v : best->basis.sv) q.svh.push_back(to_f16(v));
    q.proxy_err = std::max(0.0, least.error) / std::max(least.total, 1e-30);
    return q;
}

}  // namespace exl3
