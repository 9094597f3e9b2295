#include "base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <vector>

namespace exl3::test {

// What the reference implementation (Vigna, splitmix64.c) gives from state 1234567.
TEST(Random, Mix64IsTheSplitmixFinalizer) {
    uint64_t state = 1234567;
    const auto next = [&] { return mix64(state += 0x9e3779b97f4a7c15u); };
    EXPECT_EQ(next(), 6457827717110365317u);
    EXPECT_EQ(next(), 3203168211198807973u);
    EXPECT_EQ(next(), 9817491932198370423u);
}

// Seeded samplers and tests keep their numbers from one version to the next.
TEST(Random, StreamsAreFixed) {
    static_assert(noise64(1, 2, 3) == noise64(1, 2, 3));
    Random a(42), b(42);
    for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(a.next(), noise64(42, i));
    EXPECT_EQ(b.next(), noise64(42, 0));
}

TEST(Random, EveryArgumentMatters) {
    std::set<uint64_t> seen;
    for (uint64_t seed = 0; seed < 20; ++seed)
        for (uint64_t a = 0; a < 50; ++a)
            for (uint64_t b = 0; b < 20; ++b) seen.insert(noise64(seed, a, b));
    EXPECT_EQ(seen.size(), 20u * 50 * 20);
}

// One flipped bit of any argument changes half of the result's bits.
TEST(Random, Avalanche) {
    for (int which = 0; which < 3; ++which)
        for (int bit = 0; bit < 64; ++bit) {
            int changed = 0;
            for (uint64_t i = 0; i < 200; ++i) {
                uint64_t x[3] = {i, 3 * i, 7 * i};
                const uint64_t before = noise64(x[0], x[1], x[2]);
                x[which] ^= uint64_t{1} << bit;
                changed += std::popcount(before ^ noise64(x[0], x[1], x[2]));
            }
            // 12800 bits: a standard deviation is 57.
            EXPECT_NEAR(changed, 6400, 6 * 57) << "argument " << which << ", bit " << bit;
        }
}

TEST(Random, UnitNeverReachesItsEnds) {
    EXPECT_GT(to_unit(0), 0);
    EXPECT_LT(to_unit(~uint64_t{0}), 1);
    Random r(1);
    double sum = 0, squares = 0;
    constexpr int kCount = 100000;
    for (int i = 0; i < kCount; ++i) {
        const double u = r.uniform();
        sum += u;
        squares += u * u;
    }
    EXPECT_NEAR(sum / kCount, 0.5, 6 * 0.29 / std::sqrt(kCount));
    EXPECT_NEAR(squares / kCount, 1.0 / 3, 6 * 0.3 / std::sqrt(kCount));
}

TEST(Random, BelowIsUniformAndInRange) {
    Random r(2);
    std::vector<int> count(7);
    for (int i = 0; i < 70000; ++i) ++count.at(r.below(7));
    for (const int c : count) EXPECT_NEAR(c, 10000, 6 * 93);
    EXPECT_EQ(r.below(1), 0u);
    EXPECT_LT(r.below(~uint64_t{0}), ~uint64_t{0});
}

TEST(Random, NormalHasItsMoments) {
    Random r(3);
    constexpr int kCount = 200000;
    double m1 = 0, m2 = 0, m4 = 0;
    for (int i = 0; i < kCount; ++i) {
        const double x = r.normal();
        ASSERT_TRUE(std::isfinite(x));
        m1 += x;
        m2 += x * x;
        m4 += x * x * x * x;
    }
    EXPECT_NEAR(m1 / kCount, 0, 6 / std::sqrt(kCount));
    EXPECT_NEAR(m2 / kCount, 1, 6 * std::sqrt(2.0 / kCount));
    EXPECT_NEAR(m4 / kCount, 3, 6 * std::sqrt(96.0 / kCount));
}

TEST(Random, CoinIsFair) {
    Random r(4);
    int heads = 0;
    for (int i = 0; i < 10000; ++i) heads += r.coin();
    EXPECT_NEAR(heads, 5000, 300);
}

}  // namespace exl3::test
