// Properties of quantize_linear and its parts on small random matrices; its quality on matrices of
// other software is tests/golden/quantize_linear_test.cpp.
#include "quant/quantize_linear.h"

#include <array>
#include <cmath>
#include <limits>

#include "cpu/cpu.h"
#include "quant/row_scales.h"
#include "quant/target_scale.h"
#include "support/devices.h"
#include "support/full_weight.h"

namespace exl3::test {
namespace {

class QuantizeLinear : public testing::Test {
protected:
    std::vector<float> normal(int64_t rows, int64_t cols) {
        std::vector<float> w(static_cast<size_t>(rows * cols));
        for (float& v : w) v = static_cast<float>(0.03 * random.normal());
        return w;
    }
    // The moment of inputs whose channels differ in size and have a common part.
    FinalHessian hessian(int64_t k, int64_t rows = 2000) {
        std::vector<float> x(static_cast<size_t>(rows * k));
        for (int64_t r = 0; r < rows; ++r) {
            const double common = random.normal();
            for (int64_t i = 0; i < k; ++i)
                x[static_cast<size_t>(r * k + i)] = static_cast<float>(
                    (random.normal() + common) * std::exp(std::sin(static_cast<double>(i))));
        }
        Hessian h(k);
        h.add(*stream, dense(x.data(), DType::f32, {rows, k}));
        return finalize(std::move(h));
    }
    QuantResult quantize(const std::vector<float>& w, int64_t k, int64_t n,
                         const FinalHessian* h = nullptr, QuantParams p = {}) {
        return quantize_linear(*stream, dense(w.data(), DType::f32, {k, n}), h, p);
    }

    std::unique_ptr<Device> device = cpu::open();
    std::unique_ptr<Stream> stream = device->make_stream();
    Random random{11};
};

TEST_F(QuantizeLinear, ReportsTheErrorThatAReaderSees) {
    const int64_t k = 256, n = 128;
    const std::vector<float> w = normal(k, n);
    const FinalHessian h = hessian(k);
    for (const bool plain : {false, true})
        for (const FinalHessian* metric : {&h, static_cast<const FinalHessian*>(nullptr)})
            for (const int bits : {2, 4, 8}) {
                const QuantParams p{.bits = bits, .seed = 3, .plain = plain};
                const QuantResult q = quantize(w, k, n, metric, p);
                std::vector<double> e = full_weight(q, k, n, bits, kMul1);
                std::vector<double> source(w.begin(), w.end());
                for (size_t i = 0; i < e.size(); ++i) e[i] -= source[i];
                const double error =
                    weighted_square(e, metric ? &metric->mean : nullptr, k, n) /
                    weighted_square(source, metric ? &metric->mean : nullptr, k, n);
                EXPECT_NEAR(q.proxy_err / error, 1, 0.02) << bits << " bits, plain " << plain;
                // Feedback and scales keep the error below that of rounding alone.
                EXPECT_LT(error, 1.3 * gaussian_error(bits)) << bits << " bits, plain " << plain;
            }
}

TEST_F(QuantizeLinear, FeedbackRefitsAndDrawsLowerTheError) {
    const int64_t k = 256, n = 256;
    const std::vector<float> w = normal(k, n);
    const FinalHessian h = hessian(k);
    const auto error = [&](const QuantParams& p) { return quantize(w, k, n, &h, p).proxy_err; };
    const double plain = error({.bits = 3, .plain = true});
    const double bare = error({.bits = 3, .refit = false});
    const double best = error({.bits = 3});
    EXPECT_LT(bare, 0.97 * plain);
    EXPECT_LT(best, bare);
    EXPECT_LE(error({.bits = 3, .draws = 3}), best);
}

TEST_F(QuantizeLinear, TheSameSeedGivesTheSameBitsOnAnyNumberOfThreads) {
    const int64_t k = 128, n = 256;
    const std::vector<float> w = normal(k, n);
    const FinalHessian h = hessian(k);
    const QuantResult a = quantize(w, k, n, &h);
    device = cpu::open({.threads = 3});
    stream = device->make_stream();
    const QuantResult b = quantize(w, k, n, &h);
    EXPECT_EQ(a.trellis, b.trellis);
    EXPECT_TRUE(std::equal(a.suh.begin(), a.suh.end(), b.suh.begin(),
                           [](f16 x, f16 y) { return x.bits == y.bits; }));
    EXPECT_TRUE(std::equal(a.svh.begin(), a.svh.end(), b.svh.begin(),
                           [](f16 x, f16 y) { return x.bits == y.bits; }));
    EXPECT_NE(a.trellis, quantize(w, k, n, &h, {.seed = 1}).trellis);
}

TEST_F(QuantizeLinear, ZeroRowsAndColumnsStayZero) {
    const int64_t k = 256, n = 256;
    std::vector<float> w = normal(k, n);
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j)
            if (i % 128 > 100 || j >= 120) w[static_cast<size_t>(i * n + j)] = 0;
    const FinalHessian h = hessian(k);
    for (const bool plain : {false, true}) {
        const QuantResult q = quantize(w, k, n, &h, {.bits = 4, .plain = plain});
        if (!plain) {
            EXPECT_LT(q.proxy_err, 0.02);
        }
        const std::vector<double> y = full_weight(q, k, n, 4, kMul1);
        for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < n; ++j)
                if (j >= 120 || (i % 128 > 100 && !plain)) {
                    ASSERT_EQ(y[static_cast<size_t>(i * n + j)], 0) << i << ", " << j;
                }
    }
}

TEST_F(QuantizeLinear, AnAllZeroMatrixDecodesToZeros) {
    const std::vector<float> w(128 * 128);
    const FinalHessian h = hessian(128);
    for (const bool plain : {false, true}) {
        const QuantResult q = quantize(w, 128, 128, &h, {.bits = 3, .plain = plain});
        EXPECT_EQ(q.proxy_err, 0);
        for (const double v : full_weight(q, 128, 128, 3, kMul1)) ASSERT_EQ(v, 0);
    }
}

TEST_F(QuantizeLinear, AnySizeOfWeightIsKept) {
    const std::vector<float> w = normal(128, 128);
    for (const float size : {1e-6f, 1e-3f, 1.0f, 1e3f}) {
        std::vector<float> scaled = w;
        for (float& v : scaled) v *= size;
        EXPECT_LT(quantize(scaled, 128, 128, nullptr, {.bits = 4}).proxy_err, 0.006) << size;
    }
}

TEST_F(QuantizeLinear, OneHugeElementAndADeadInputAreSurvived) {
    const int64_t k = 128, n = 256;
    std::vector<float> w = normal(k, n);
    w[1234] = 30;
    FinalHessian h = hessian(k);
    for (int64_t i = 0; i < k; ++i)
        h.mean[static_cast<size_t>(7 * k + i)] = h.mean[static_cast<size_t>(i * k + 7)] = 0;
    for (const int bits : {2, 4, 8})
        EXPECT_LT(quantize(w, k, n, &h, {.bits = bits}).proxy_err, 2 * gaussian_error(bits))
            << bits;
}

TEST_F(QuantizeLinear, FewRowsOfCalibrationAreNotTrusted) {
    // Fewer rows than channels: singular, and no guide for directions it has not seen.
    const int64_t k = 256, n = 128;
    const std::vector<float> w = normal(k, n);
    const FinalHessian few = hessian(k, 20), many = hessian(k, 4000);
    EXPECT_GT(few.uncertainty, 10 * many.uncertainty);
    const QuantResult q = quantize(w, k, n, &few, {.bits = 4});
    std::vector<double> e = full_weight(q, k, n, 4, kMul1);
    for (size_t i = 0; i < e.size(); ++i) e[i] -= w[i];
    const std::vector<double> source(w.begin(), w.end());
    EXPECT_LT(weighted_square(e, &many.mean, k, n) / weighted_square(source, &many.mean, k, n),
              1.5 * gaussian_error(4));
}

TEST_F(QuantizeLinear, RefusesWhatIsNotFiniteByName) {
    std::vector<float> w = normal(128, 128);
    w[128 * 5 + 17] = std::numeric_limits<float>::quiet_NaN();
    try {
        quantize(w, 128, 128, nullptr, {.name = "layers.0.q_proj"});
        FAIL() << "was accepted";
    } catch (const Error& e) {
        const std::string what = e.what();
        EXPECT_NE(what.find("layers.0.q_proj"), std::string::npos) << what;
        EXPECT_NE(what.find("input 5 and output 17"), std::string::npos) << what;
    }
}

TEST_F(QuantizeLinear, HessianDropsRowsThatAreNotFinite) {
    std::vector<float> x(3 * 100, 1.0f);
    x[150] = std::numeric_limits<float>::infinity();
    Hessian h(128);
    h.add(*stream, dense(x.data(), DType::f32, {3, 100}));
    EXPECT_EQ(h.count(), 2);
    EXPECT_EQ(h.dropped(), 1);
    const FinalHessian f = finalize(std::move(h));
    EXPECT_TRUE(f.usable);
    EXPECT_EQ(f.mean[0], 1);
    EXPECT_EQ(f.mean[99], 1);
    EXPECT_EQ(f.mean[99 * 128], 1);
    EXPECT_EQ(f.mean[100], 0);
    EXPECT_FALSE(finalize(Hessian(128)).usable);
}

TEST_F(QuantizeLinear, BlockLdlGivesTheMatrixBack) {
    const int64_t k = 384;
    const FinalHessian h = hessian(k);
    const std::vector<float> m =
        rotated(*stream, h, std::vector<float>(static_cast<size_t>(k), 1.0f), 0.01);
    std::vector<float> f = m;
    const double trace = block_ldl(*stream, f, k);
    const auto root = [&](int64_t i, int64_t j) -> double {  // (I + L) D^1/2
        if (j / 16 == i / 16) return j <= i ? f[static_cast<size_t>(i * k + j)] : 0;
        if (j > i) return 0;
        double v = 0;
        for (int64_t c = j; c < j / 16 * 16 + 16; ++c)
            v += static_cast<double>(f[static_cast<size_t>(i * k + c)]) *
                 f[static_cast<size_t>(c * k + j)];
        return v;
    };
    double d = 0;
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = i / 16 * 16; j <= i; ++j) d += std::pow(root(i, j), 2);
    EXPECT_NEAR(trace / d, 1, 1e-6);
    for (const auto& [i, j] :
         {std::pair<int64_t, int64_t>{0, 0}, {200, 3}, {383, 383}, {300, 290}}) {
        double v = 0;
        for (int64_t c = 0; c <= std::min(i, j); ++c) v += root(i, c) * root(j, c);
        EXPECT_NEAR(v, m[static_cast<size_t>(i * k + j)], 1e-4 * h.diagonal);
    }
}

TEST_F(QuantizeLinear, AMatrixThatIsNotPositiveDefiniteIsDampedOrRefused) {
    const int64_t k = 128;
    std::vector<float> m(static_cast<size_t>(k * k));
    for (int64_t i = 0; i < k; ++i) m[static_cast<size_t>(i * k + i)] = i < 3 ? -0.01f : 1.0f;
    std::vector<float> f = m;
    EXPECT_GT(block_ldl(*stream, f, k), 0);
    for (float& v : m) v = -v;
    EXPECT_THROW(block_ldl(*stream, m, k), Error);
}

TEST_F(QuantizeLinear, SolveInvertsAPositiveDefiniteMatrix) {
    const int64_t k = 200;
    std::vector<float> a(static_cast<size_t>(k * k));
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < k; ++j)
            a[static_cast<size_t>(i * k + j)] =
                static_cast<float>(std::exp(-0.3 * std::fabs(static_cast<double>(i - j))));
    std::vector<double> x(static_cast<size_t>(k)), b(static_cast<size_t>(k));
    for (double& v : x) v = random.normal();
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < k; ++j)
            b[static_cast<size_t>(i)] +=
                a[static_cast<size_t>(i * k + j)] * x[static_cast<size_t>(j)];
    ASSERT_TRUE(solve(*stream, a, b));
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(b[i], x[i], 1e-4);
}

TEST_F(QuantizeLinear, ScalesOfABlockKeepTheTargetsAtVarianceOne) {
    std::vector<double> rms(256);
    for (size_t i = 0; i < rms.size(); ++i)
        rms[i] = i == 200 ? 0 : 0.01 * static_cast<double>(1 + i % 17);
    const RowScales r = choose_row_scales(*stream, nullptr, rms, 0.01, 1, 5);
    EXPECT_EQ(r.scale[200], 0);
    for (size_t begin = 0; begin < rms.size(); begin += 128) {
        double sum = 0;
        for (size_t i = begin; i < begin + 128; ++i)
            if (r.scale[i] != 0) sum += std::pow(rms[i] / r.scale[i], 2);
        EXPECT_NEAR(sum / 128, 1, 1e-5);
    }
}

// tr(O Eᵀ H E): what both metrics together make of an error.
double both_sided(const std::vector<double>& e, const FinalHessian& h, const FinalHessian& o) {
    double sum = 0;
    for (int64_t i = 0; i < h.k; ++i)
        for (int64_t a = 0; a < h.k; ++a) {
            const double weight = h.mean[static_cast<size_t>(i * h.k + a)];
            for (int64_t j = 0; j < o.k; ++j) {
                double row = 0;
                for (int64_t b = 0; b < o.k; ++b)
                    row += o.mean[static_cast<size_t>(j * o.k + b)] *
                           e[static_cast<size_t>(a * o.k + b)];
                sum += weight * row * e[static_cast<size_t>(i * o.k + j)];
            }
        }
    return sum;
}

TEST_F(QuantizeLinear, AMetricOfTheOutputsLowersTheErrorInIt) {
    const int64_t k = 128, n = 256;
    const std::vector<float> w = normal(k, n);
    const FinalHessian h = hessian(k), o = hessian(n);
    for (const int bits : {2, 4}) {
        const auto error = [&](const FinalHessian* output) {
            const QuantResult q =
                quantize(w, k, n, &h, {.bits = bits, .seed = 3, .output = output});
            std::vector<double> e = full_weight(q, k, n, bits, kMul1);
            for (size_t i = 0; i < e.size(); ++i) e[i] -= w[i];
            return both_sided(e, h, o);
        };
        EXPECT_LT(error(&o), 0.9 * error(nullptr)) << bits;
    }
}

}  // namespace
}  // namespace exl3::test
