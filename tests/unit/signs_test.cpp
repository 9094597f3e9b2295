#include "trellis/signs.h"

#include <gtest/gtest.h>

#include <array>

namespace exl3 {
namespace {

TEST(ExpandSigns, LowestBitIsTheFirstChannelAndSetMeansMinusOne) {
    const std::array<uint16_t, 3> words = {0x0001, 0x8000, 0x0005};
    std::array<f16, 48> scales{};
    expand_signs(words, scales);
    for (size_t i = 0; i < scales.size(); ++i) {
        const bool minus = i == 0 || i == 31 || i == 32 || i == 34;
        EXPECT_EQ(to_float(scales[i]), minus ? -1.0f : 1.0f) << "channel " << i;
    }
}

TEST(ExpandSignsDeathTest, RefusesASizeThatIsNotSixteenPerWord) {
    const std::array<uint16_t, 2> words{};
    std::array<f16, 31> scales{};
    EXPECT_DEATH(expand_signs(words, scales), "signs.cpp");
}

}  // namespace
}  // namespace exl3
