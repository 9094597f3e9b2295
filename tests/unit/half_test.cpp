#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace exl3::test {
namespace {

float f32(uint32_t bits) {
    return std::bit_cast<float>(bits);
}

// The definition of IEEE 754: sign, exponent, fraction.
double value_of(uint16_t bits, int exponent_bits, int fraction_bits) {
    const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = bits & ((1 << fraction_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction ? std::numeric_limits<double>::quiet_NaN()
                        : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

// Nearest value with ties to the even fraction, found among a candidate and its two neighbours.
void expect_nearest(double x, uint16_t got, int exponent_bits, int fraction_bits) {
    const auto infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
    const auto size = static_cast<uint16_t>(got & 0x7fff);
    ASSERT_EQ(got >> 15, std::signbit(x) ? 1 : 0) << x;
    ASSERT_LE(size, infinity) << x;
    // Infinity stands for the power of two one past the largest exponent.
    const auto at = [&](uint16_t bits) {
        return bits == infinity ? std::ldexp(1.0, 1 << (exponent_bits - 1))
                                : value_of(bits, exponent_bits, fraction_bits);
    };
    const double error = std::fabs(std::fabs(x) - at(size));
    for (const int step : {-1, 1}) {
        const int other = size + step;
        if (other < 0 || other > infinity || (size == infinity && std::fabs(x) > at(size)))
            continue;
        const double theirs = std::fabs(std::fabs(x) - at(static_cast<uint16_t>(other)));
        ASSERT_LE(error, theirs) << x;
        ASSERT_TRUE(error < theirs || size % 2 == 0) << x << " is a tie";
    }
}

}  // namespace

TEST(Half, EveryF16HasItsValueAndComesBack) {
    for (uint32_t b = 0; b < 65536; ++b) {
        const auto bits = static_cast<uint16_t>(b);
        const float v = to_float(f16{bits});
        const double want = value_of(bits, 5, 10);
        if (std::isnan(want)) {
            EXPECT_TRUE(std::isnan(v));
            EXPECT_TRUE(std::isnan(to_float(to_f16(v))));
            EXPECT_EQ(to_f16(v).bits >> 15, bits >> 15);
            continue;
        }
        ASSERT_EQ(v, want);
        ASSERT_EQ(to_f16(v).bits, bits);
    }
}

TEST(Half, EveryBf16HasItsValueAndComesBack) {
    for (uint32_t b = 0; b < 65536; ++b) {
        const auto bits = static_cast<uint16_t>(b);
        const float v = to_float(bf16{bits});
        const double want = value_of(bits, 8, 7);
        if (std::isnan(want)) {
            EXPECT_TRUE(std::isnan(v));
            EXPECT_TRUE(std::isnan(to_float(to_bf16(v))));
            continue;
        }
        ASSERT_EQ(v, want);
        ASSERT_EQ(to_bf16(v).bits, bits);
    }
}

// Around every f16: its exact neighbourhood, the midpoint to the next one and what lies beside it.
TEST(Half, F16RoundsToNearestEven) {
    for (uint32_t b = 0; b < 0x7c00; ++b) {
        const double low = value_of(static_cast<uint16_t>(b), 5, 10);
        const double high = b + 1 == 0x7c00 ? 65536 : value_of(static_cast<uint16_t>(b + 1), 5, 10);
        const auto middle = static_cast<float>((low + high) / 2);  // exact: 12 bits
        for (const float x : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e9f)})
            for (const float signed_x : {x, -x})
                expect_nearest(signed_x, to_f16(signed_x).bits, 5, 10);
    }
}

TEST(Half, Bf16RoundsToNearestEven) {
    for (uint32_t b = 0; b < 0x7f80; ++b)
        for (const uint32_t below : {0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
            for (const uint32_t sign : {0u, 0x80000000u}) {
                const float x = f32(sign | (b << 16) | below);
                expect_nearest(x, to_bf16(x).bits, 8, 7);
            }
}

TEST(Half, AnyFloatRounds) {
    Random random(1);
    for (int i = 0; i < 1000000; ++i) {
        const float x = f32(static_cast<uint32_t>(random.next()));
        if (std::isnan(x)) continue;
        expect_nearest(x, to_f16(x).bits, 5, 10);
        expect_nearest(x, to_bf16(x).bits, 8, 7);
    }
}

TEST(Half, LimitsOfF16) {
    EXPECT_EQ(to_f16(65504.0f).bits, 0x7bff);
    EXPECT_EQ(to_f16(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
    EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
    EXPECT_EQ(to_f16(-INFINITY).bits, 0xfc00);
    EXPECT_EQ(to_f16(0x1p-24f).bits, 1);
    EXPECT_EQ(to_f16(0x1p-25f).bits, 0);  // a tie between 0 and the smallest subnormal
    EXPECT_EQ(to_f16(std::nextafter(0x1p-25f, 1.0f)).bits, 1);
    EXPECT_EQ(to_f16(-0.0f).bits, 0x8000);
    EXPECT_EQ(to_f16(-1e-30f).bits, 0x8000);
}

}  // namespace exl3::test
