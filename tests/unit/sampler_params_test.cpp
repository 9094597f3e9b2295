#include "sample/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "sample/sampler.h"

namespace exl3::test {
namespace {

std::string complaint(const SamplerParams& p, int vocab = 0) {
    const auto error = check_params(p, vocab);
    if (!error) return "";
    EXPECT_EQ(error->code(), Errc::invalid_argument);
    return error->what();
}

TEST(SamplerParams, DefaultsAreValidAndNeutral) {
    EXPECT_EQ(complaint({}), "");
    EXPECT_EQ(complaint(recommended_params()), "");
    // Nothing in the defaults changes a distribution: even a token of probability 1e-6 stays.
    std::vector<float> logits = {0, -5, -13.8f, 2};
    const Sampler sampler({.logprobs = 4, .logprob_mode = LogprobMode::processed});
    SamplerState state = sampler.start(std::vector<int32_t>{0, 1, 2, 0, 1, 2}, 1);
    const auto after = sampler.sample(logits, state).top;
    const Sampler raw({.logprobs = 4});
    const auto before = raw.sample(logits, state).top;
    ASSERT_EQ(after.size(), 4u);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(after[i].logprob, before[i].logprob);
}

TEST(SamplerParams, EveryNumberIsCheckedAgainstItsRangeAndNamed) {
    for (const ParamInfo& info : sampler_param_table()) {
        SamplerParams p;
        if (const auto* real = std::get_if<double SamplerParams::*>(&info.field)) {
            for (const double x :
                 {info.min - 1, info.max + 1, std::numeric_limits<double>::quiet_NaN(),
                  std::numeric_limits<double>::infinity()}) {
                p.** real = x;
                EXPECT_NE(complaint(p).find(": " + std::string(info.name) + ": found"),
                          std::string::npos)
                    << info.name << " " << x << ": " << complaint(p);
            }
            p.** real = info.max;
            EXPECT_EQ(complaint(p), "");
            p.** real = info.min;
            EXPECT_EQ(complaint(p).empty(), !info.min_excluded);
        } else if (const auto* whole = std::get_if<int SamplerParams::*>(&info.field)) {
            p.** whole = static_cast<int>(info.min) - 1;
            EXPECT_NE(complaint(p).find(info.name), std::string::npos) << info.name;
            p.** whole = static_cast<int>(info.max);
            EXPECT_EQ(complaint(p), "");
        }
    }
    EXPECT_EQ(complaint({.temperature = -0.5}),
              "sampling: temperature: found -0.5: allowed from 0 to 10");
    EXPECT_EQ(complaint({.repetition_penalty = 0}),
              "sampling: repetition_penalty: found 0: allowed above 0 to 100");
    EXPECT_EQ(complaint({.top_k = -2}), "sampling: top_k: found -2: allowed -1 or more");
}

TEST(SamplerParams, TokenIdsAreComparedWithTheVocabulary) {
    SamplerParams p;
    p.banned_tokens = {99};
    EXPECT_EQ(complaint(p), "");
    EXPECT_EQ(complaint(p, 100), "");
    EXPECT_EQ(complaint(p, 99), "sampling: banned_tokens: found token 99: allowed 0 to 98");
    p.banned_tokens = {-1};
    EXPECT_NE(complaint(p), "");
    p = {};
    p.allowed_tokens = {5};
    EXPECT_NE(complaint(p, 5), "");
    p = {};
    p.logit_bias = {{5, 1.0}};
    EXPECT_NE(complaint(p, 5), "");
    p.logit_bias = {{4, 101.0}};
    EXPECT_EQ(complaint(p, 5),
              "sampling: logit_bias: found 101 for token 4: allowed from -100 to 100");
    p.logit_bias = {{4, -std::numeric_limits<double>::infinity()}};
    EXPECT_EQ(complaint(p, 5), "");
}

TEST(SamplerParams, SamplerNames) {
    for (const SamplerStep step : default_order(false))
        EXPECT_EQ(step_from_name(step_name(step)), step);
    EXPECT_EQ(step_from_name("typ_p"), SamplerStep::typical);
    EXPECT_EQ(step_from_name("typical_p"), SamplerStep::typical);
    SamplerParams p;
    p.samplers = {"top_k", "topp"};
    EXPECT_NE(complaint(p).find("'topp'"), std::string::npos);
    EXPECT_NE(complaint(p).find("top_n_sigma"), std::string::npos) << "the names are listed";
    p.samplers = {"top_k", "min_p", "top_k"};
    EXPECT_NE(complaint(p).find("twice"), std::string::npos);
    EXPECT_THROW(Sampler{p}, Error);
}

TEST(SamplerParams, DefaultOrdersHoldEachStepOnce) {
    for (const bool last : {false, true}) {
        const auto order = default_order(last);
        EXPECT_EQ(std::set<SamplerStep>(order.begin(), order.end()).size(), 11u);
        EXPECT_EQ(order.size(), 11u);
    }
}

TEST(SamplerParams, NamesAndAliasesAreUnique) {
    std::set<std::string> seen;
    for (const ParamInfo& info : sampler_param_table()) {
        std::string all = std::string(info.name) + " " + std::string(info.aliases);
        size_t begin = 0;
        while (begin < all.size()) {
            const size_t end = std::min(all.find(' ', begin), all.size());
            if (end > begin) {
                EXPECT_TRUE(seen.insert(all.substr(begin, end - begin)).second) << all;
            }
            begin = end + 1;
        }
        EXPECT_FALSE(info.description.empty());
    }
}

}  // namespace
}  // namespace exl3::test
