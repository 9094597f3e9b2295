#include "quant/allocate.h"

#include <gtest/gtest.h>

#include <cmath>

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

double storage(const std::vector<BitCandidate>& c, const std::vector<int>& bits) {
    double sum = 0;
    for (size_t i = 0; i < c.size(); ++i)
        sum += static_cast<double>(padded_numel(c[i].spec)) * bits[i];
    return sum;
}

TEST(AllocateByWorth, SpendsTheSameStorageWhereItCounts) {
    auto c = stack(6);
    for (BitCandidate& each : c)
        each.sensitivity = 1e-6 * static_cast<double>(padded_numel(each.spec));
    for (const double target : {2.0, 2.5, 3.3, 4.0}) {
        const auto even = allocate_by_worth(c, {.bits = target, .head_trades = false});
        EXPECT_EQ(even.back(), 6);
        EXPECT_LE(average_bits(c, even), target + 1e-5);
        EXPECT_GT(average_bits(c, even), target - 0.05);

        const auto shared = allocate_by_worth(c, {.bits = target});
        const double whole = storage(c, even);
        EXPECT_LE(storage(c, shared), whole * 1.01);
        EXPECT_GT(storage(c, shared), whole * 0.99);
        // All weights are alike here, so the head has no claim to more than the others.
        EXPECT_LT(shared.back(), 6);
        EXPECT_GT(average_bits(c, shared), target);
    }
    // A matrix that counts sixteen times as much is worth two more bits.
    const auto before = allocate_by_worth(c, {.bits = 3});
    for (BitCandidate& each : c)
        if (each.layer == 0 && each.spec.key.str().ends_with("v_proj")) each.sensitivity *= 16 * 3;
    const auto after = allocate_by_worth(c, {.bits = 3});
    for (size_t i = 0; i < c.size(); ++i) {
        const std::string name = c[i].spec.key.str();
        const bool raised = name == "layers.0.attn.v_proj" || name == "layers.0.attn.k_proj";
        if (raised) {
            EXPECT_GE(after[i], before[i] + 2) << name;
        }
    }
}

TEST(AllocateByWorth, MatricesOfOneKernelStayAlike) {
    auto c = stack(5);
    double s = 1;
    for (BitCandidate& each : c) each.sensitivity = s = s * 1.37 - std::floor(s * 1.37) + 0.01;
    const auto bits = allocate_by_worth(c, {.bits = 3.4});
    for (size_t i = 0; i < c.size(); ++i)
        for (size_t j = 0; j < c.size(); ++j) {
            const auto name = [&](size_t at) { return c[at].spec.key.str(); };
            const bool pair = (name(i).ends_with("k_proj") && name(j).ends_with("v_proj")) ||
                              (name(i).ends_with("gate_proj") && name(j).ends_with("up_proj"));
            if (pair && c[i].layer == c[j].layer) {
                EXPECT_EQ(bits[i], bits[j]);
            }
        }
}

}  // namespace
}  // namespace exl3
