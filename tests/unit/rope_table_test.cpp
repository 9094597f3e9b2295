#include "model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace exl3 {
namespace {

TEST(RopeTable, PlainFrequenciesFallGeometrically) {
    const RopeTable t = rope_table({.dims = 64, .theta = 1e4}, 0);
    ASSERT_EQ(t.inv_freq.size(), 32u);
    EXPECT_FLOAT_EQ(t.inv_freq[0], 1);
    EXPECT_FLOAT_EQ(t.inv_freq[16], 0.01f);
}

TEST(RopeTable, Llama3KeepsShortWavesAndStretchesLongOnes) {
    const RopeSpec plain{.dims = 128, .theta = 5e5};
    RopeSpec scaled = plain;
    scaled.scaling = RopeScaling::llama3;
    scaled.factor = 8;
    scaled.original_length = 8192;
    const auto a = rope_table(plain, 0).inv_freq, b = rope_table(scaled, 0).inv_freq;
    for (size_t i = 0; i < a.size(); ++i) {
        const double wave = 2 * std::numbers::pi / a[i];
        if (wave < 8192 / 4.0) {
            EXPECT_FLOAT_EQ(b[i], a[i]);
        } else if (wave > 8192) {
            EXPECT_FLOAT_EQ(b[i], a[i] / 8);
        } else {
            EXPECT_TRUE(b[i] < a[i] && b[i] > a[i] / 8);
        }
    }
}

TEST(RopeTable, LongropeChoosesByTheLengthOfTheRequest) {
    const RopeSpec s{.dims = 4,
                     .scaling = RopeScaling::longrope,
                     .original_length = 64,
                     .short_factor = {1, 1},
                     .long_factor = {2, 4}};
    EXPECT_TRUE(depends_on_length(s));
    EXPECT_FLOAT_EQ(rope_table(s, 64).inv_freq[0], 1);
    EXPECT_FLOAT_EQ(rope_table(s, 65).inv_freq[0], 0.5f);
}

TEST(RopeTable, DynamicScalingLeavesShortRequestsAlone) {
    const RopeSpec s{
        .dims = 64, .theta = 1e4, .scaling = RopeScaling::dynamic, .factor = 2, .max_length = 2048};
    const auto plain = rope_table({.dims = 64, .theta = 1e4}, 0).inv_freq;
    EXPECT_EQ(rope_table(s, 100).inv_freq, plain);
    EXPECT_LT(rope_table(s, 4096).inv_freq[31], plain[31]);
}

TEST(RopeTable, YarnInterpolatesOnlySlowChannels) {
    const RopeSpec s{.dims = 128,
                     .theta = 1e6,
                     .scaling = RopeScaling::yarn,
                     .factor = 4,
                     .original_length = 32768};
    const auto plain = rope_table({.dims = 128, .theta = 1e6}, 0).inv_freq,
               yarn = rope_table(s, 0).inv_freq;
    EXPECT_FLOAT_EQ(yarn[0], plain[0]);
    EXPECT_FLOAT_EQ(yarn[63], plain[63] / 4);
}

}  // namespace
}  // namespace exl3
