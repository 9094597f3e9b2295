// The elementary functions of every tier against the double-precision library.
#define EXL3_ISA_FILE "unit/simd_math_test.cpp"
#include "cpu/isa.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

EXL3_ISA_BEGIN

void test_exp(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; i += F32::width)
        exp(F32::load(x + i, lesser(F32::width, n - i))).store(y + i, lesser(F32::width, n - i));
}
void test_tanh(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; i += F32::width)
        tanh(F32::load(x + i, lesser(F32::width, n - i))).store(y + i, lesser(F32::width, n - i));
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::test {
namespace {

using Function = void (*)(const float*, float*, int64_t);

// Values spread evenly over the representable numbers in [from, to] of either sign.
std::vector<float> spread(float from, float to) {
    std::vector<float> x;
    const auto first = std::bit_cast<uint32_t>(from), last = std::bit_cast<uint32_t>(to);
    for (uint32_t b = first; b <= last; b += 997) {
        x.push_back(std::bit_cast<float>(b));
        x.push_back(-std::bit_cast<float>(b));
    }
    return x;
}

double worst_relative_error(Function f, double (*exact)(double), const std::vector<float>& x) {
    std::vector<float> y(x.size());
    f(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        const double want = exact(x[i]);
        worst = std::max(worst, std::fabs(y[i] - want) / std::fabs(want));
    }
    return worst;
}

struct Tier {
    cpu::Isa isa;
    Function exp, tanh;
    double exp_error, tanh_error;  // relative; 1.2e-7 is one unit in the last place at worst
};

std::vector<Tier> tiers() {
    std::vector<Tier> all = {
        {cpu::Isa::scalar, cpu::scalar::test_exp, cpu::scalar::test_tanh, 2.4e-7, 4.8e-7},
        {cpu::Isa::avx2, cpu::avx2::test_exp, cpu::avx2::test_tanh, 1.3e-7, 3.6e-7},
        {cpu::Isa::avx512, cpu::avx512::test_exp, cpu::avx512::test_tanh, 1.3e-7, 3.6e-7}};
    std::erase_if(all, [](const Tier& t) { return t.isa > cpu::best_isa(); });
    return all;
}

}  // namespace

TEST(SimdMath, Exp) {
    for (const Tier& t : tiers()) {
        EXPECT_LT(worst_relative_error(t.exp, std::exp, spread(1e-10f, 87.0f)), t.exp_error)
            << cpu::name_of(t.isa);
        const std::vector<float> x = {0, -0.0f, -INFINITY, -1e30f, -100, INFINITY, 200, NAN, 1};
        std::vector<float> y(x.size());
        t.exp(x.data(), y.data(), static_cast<int64_t>(x.size()));
        EXPECT_EQ(y[0], 1);
        EXPECT_EQ(y[1], 1);
        for (const int i : {2, 3, 4}) EXPECT_EQ(y[static_cast<size_t>(i)], 0);
        for (const int i : {5, 6}) EXPECT_EQ(y[static_cast<size_t>(i)], INFINITY);
        EXPECT_TRUE(std::isnan(y[7]));
    }
}

TEST(SimdMath, Tanh) {
    for (const Tier& t : tiers()) {
        EXPECT_LT(worst_relative_error(t.tanh, std::tanh, spread(1e-30f, 40.0f)), t.tanh_error)
            << cpu::name_of(t.isa);
        const std::vector<float> x = {0, -INFINITY, INFINITY, NAN};
        std::vector<float> y(x.size());
        t.tanh(x.data(), y.data(), static_cast<int64_t>(x.size()));
        EXPECT_EQ(y[0], 0);
        EXPECT_EQ(y[1], -1);
        EXPECT_EQ(y[2], 1);
        EXPECT_TRUE(std::isnan(y[3]));
    }
}

}  // namespace exl3::test
#endif
