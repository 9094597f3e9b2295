#include "quant/allocate.h"

#include <gtest/gtest.h>

namespace exl3 {
namespace {

std::vector<BitCandidate> stack(int layers) {
    std::vector<BitCandidate> v;
    for (int i = 0; i < layers; ++i) {
        const Key at = Key("layers") / i;
        for (const LinearSpec& l : linears_of(
                 AttentionSpec{.key = at / "attn", .heads = 4, .kv_heads = 2, .head_dim = 64}, 256))
            v.push_back({l, i});
        for (const LinearSpec& l : linears_of(GatedMlpSpec{.key = at / "mlp", .inner = 768}, 256))
            v.push_back({l, i});
    }
    v.push_back(
        {LinearSpec{.key = "lm_head", .in = 256, .out = 500, .group = "head", .head = true}, 0});
    return v;
}

TEST(Allocate, WholeBitsAreEvenAndTheHeadStandsApart) {
    const auto c = stack(3);
    const auto bits = allocate_bits(c, {.bits = 4, .head_bits = 6, .layers = 3});
    for (size_t i = 0; i + 1 < c.size(); ++i) EXPECT_EQ(bits[i], 4);
    EXPECT_EQ(bits.back(), 6);
    EXPECT_DOUBLE_EQ(average_bits(c, bits), 4);
}

TEST(Allocate, FractionsStayInsideTheBudgetAndNearIt) {
    const auto c = stack(10);
    for (const double target : {1.1, 2.25, 3.0, 3.5, 3.75, 4.6, 7.9, 8.0}) {
        const auto bits = allocate_bits(c, {.bits = target, .layers = 10});
        const double average = average_bits(c, bits);
        EXPECT_LE(average, target + 1e-5);
        EXPECT_GT(average, target - 0.05) << target;
        for (size_t i = 0; i < c.size(); ++i)
            for (size_t j = 0; j < c.size(); ++j)
                if (c[i].spec.group == c[j].spec.group) {
                    EXPECT_EQ(bits[i], bits[j]);
                }
    }
}

TEST(Allocate, AttentionComesFirstThenTheOuterLayers) {
    const auto c = stack(4);
    // Attention is a quarter of each layer here; at 3.25 all of it fits, and nothing else.
    const auto bits = allocate_bits(c, {.bits = 3.25, .layers = 4});
    for (size_t i = 0; i + 1 < c.size(); ++i) EXPECT_EQ(bits[i], c[i].spec.priority == 2 ? 4 : 3);
    const auto more = allocate_bits(c, {.bits = 3.5, .layers = 4});
    for (size_t i = 0; i + 1 < c.size(); ++i)
        if (c[i].spec.priority == 0 && more[i] == 4) {
            EXPECT_TRUE(c[i].layer == 0 || c[i].layer == 3);
        }
}

}  // namespace
}  // namespace exl3
