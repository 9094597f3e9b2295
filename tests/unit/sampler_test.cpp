// The sampler as a whole: drawn tokens, order of steps, seeds, masks, odd logits,
// log-probabilities.
#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "base/random.h"
#include "support/sampler_oracle.h"

namespace exl3::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(uint64_t seed, int size, double spread = 2) {
    Random random(seed);
    std::vector<float> logits(static_cast<size_t>(size));
    for (float& l : logits) l = static_cast<float>(spread * random.normal());
    return logits;
}

// Turns every knob into a distribution: "processed" log-probabilities of all tokens.
std::vector<double> distribution(SamplerParams p, const std::vector<float>& logits,
                                 std::vector<int32_t> history = {}) {
    p.logprobs = 1000;
    p.logprob_mode = LogprobMode::processed;
    const Sampler sampler(p);
    SamplerState state = sampler.start(history, 1);
    const SampleResult r = sampler.sample(logits, state);
    std::vector<double> out(logits.size(), 0.0);
    for (const auto& t : r.top) out[static_cast<size_t>(t.token)] = std::exp(t.logprob);
    return out;
}

std::vector<int32_t> support_of(const std::vector<double>& p) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < p.size(); ++i)
        if (p[i] > 0) ids.push_back(static_cast<int32_t>(i));
    return ids;
}

// Draws at many positions and compares frequencies with `expected`. The bound is about five
// standard deviations of chi-square, and seeds are fixed, so it does not fail by chance.
void expect_drawn_like(const SamplerParams& p, const std::vector<float>& logits,
                       const std::vector<double>& expected) {
    const Sampler sampler(p);
    SamplerState state = sampler.start({}, 99);
    const int draws = 100000;
    std::vector<int> count(logits.size(), 0);
    for (int i = 0; i < draws; ++i) {
        const SampleResult r = sampler.sample(logits, state);
        ASSERT_EQ(r.status, SampleStatus::ok);
        ++count[static_cast<size_t>(r.token)];
        ++state.position;
    }
    double chi = 0;
    int cells = 0;
    for (size_t i = 0; i < count.size(); ++i) {
        const double mean = expected[i] * draws;
        if (expected[i] == 0) {
            EXPECT_EQ(count[i], 0) << "token " << i << " must not be drawn";
            continue;
        }
        chi += (count[i] - mean) * (count[i] - mean) / mean;
        ++cells;
    }
    const double freedom = std::max(1, cells - 1);
    EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom)) << cells << " cells";
}

TEST(Sampler, DrawsFollowTheDistributionOfEachChain) {
    const auto logits = random_logits(1, 24, 1.2);
    for (const SamplerParams& p : {
             SamplerParams{},
             SamplerParams{.temperature = 0.6},
             SamplerParams{.temperature = 1.5, .top_k = 7},
             SamplerParams{.top_p = 0.8},
             SamplerParams{.min_p = 0.1},
             SamplerParams{.top_a = 0.3},
             SamplerParams{.typical = 0.7},
             SamplerParams{.tfs = 0.8},
             SamplerParams{.top_n_sigma = 1},
             SamplerParams{.smoothing_factor = 0.3, .smoothing_curve = 1.5},
             SamplerParams{.min_temp = 0.5, .max_temp = 2},
             SamplerParams{.xtc_probability = 0.5, .xtc_threshold = 0.08},
             SamplerParams{.temperature = 0.7, .top_k = 12, .top_p = 0.9, .min_p = 0.05},
         })
        expect_drawn_like(p, logits, distribution(p, logits));
}

TEST(Sampler, DrawsFollowSoftmaxWithManyTokens) {
    const auto logits = random_logits(2, 700, 1);
    expect_drawn_like({}, logits, softmax(oracle_list(logits)));
}

TEST(Sampler, RandomXtcDrawsLikeItsExpectation) {
    const auto logits = random_logits(3, 12, 1);
    const SamplerParams rolled{.xtc_probability = 0.35, .xtc_threshold = 0.1, .xtc_random = true};
    const SamplerParams expected{.xtc_probability = 0.35, .xtc_threshold = 0.1};
    EXPECT_NE(distribution(expected, logits), distribution({}, logits));
    expect_drawn_like(rolled, logits, distribution(expected, logits));
}

TEST(Sampler, SkewBendsTheCumulativeDistribution) {
    const auto logits = random_logits(4, 9, 1);
    OracleList list = oracle_list(logits);
    sort_descending(list);
    const auto p = softmax(list);
    for (const double skew : {-0.5, 0.7}) {
        // r^exp(-skew) < c if and only if r < c^exp(skew).
        std::vector<double> expected(logits.size());
        double sum = 0, before = 0;
        for (size_t i = 0; i < list.size(); ++i) {
            sum = std::min(1.0, sum + p[i]);
            const double bent = std::pow(sum, std::exp(skew));
            expected[static_cast<size_t>(list[i].id)] = bent - before;
            before = bent;
        }
        expect_drawn_like({.skew = skew}, logits, expected);
    }
}

TEST(Sampler, MirostatHoldsTheSurprise) {
    const auto logits = random_logits(5, 4000, 2);
    for (const int mode : {1, 2}) {
        const double tau = 4;
        const Sampler sampler({.mirostat_mode = mode, .mirostat_tau = tau, .mirostat_eta = 0.1});
        SamplerState state = sampler.start({}, 5);
        double sum = 0;
        const int steps = 4000, warm_up = 500;
        for (int i = 0; i < steps; ++i) {
            const SampleResult r = sampler.sample(logits, state);
            if (i >= warm_up) sum -= std::log2(r.probability);
            state.accept(r.token);
        }
        EXPECT_NEAR(sum / (steps - warm_up), tau, 0.1) << "mode " << mode;
    }
}

TEST(Sampler, AdaptivePHoldsTheAverageProbability) {
    const std::vector<double> p = {0.3, 0.2, 0.15, 0.1, 0.08, 0.06, 0.05, 0.03, 0.02, 0.01};
    std::vector<float> logits;
    for (const double x : p) logits.push_back(static_cast<float>(std::log(x)));
    // Plain sampling gives 0.18. The feedback is proportional, so it stops short of the target.
    double previous = 0;
    for (const double target : {0.08, 0.15, 0.22}) {
        const Sampler sampler({.adaptive_target = target});
        SamplerState state = sampler.start({}, 5);
        double sum = 0;
        for (int i = 0; i < 5000; ++i) {
            const int32_t token = sampler.sample(logits, state).token;
            sum += p[static_cast<size_t>(token)] / 5000;
            state.accept(token);
        }
        EXPECT_NEAR(sum, target, 0.035);
        EXPECT_GT(sum, previous + 0.03);
        previous = sum;
    }
}

TEST(Sampler, DefaultOrderIsTheDocumentedOne) {
    // By hand: temperature, top-k, top-p, min-p, one after the other.
    const auto logits = random_logits(7, 200);
    OracleList list = oracle_list(logits);
    for (auto& t : list) t.logit /= 1.4;
    list = oracle_min_p(oracle_top_p(oracle_top_k(list, 60), 0.9), 0.2);
    const auto expected = softmax(list);
    const auto got =
        distribution({.temperature = 1.4, .top_k = 60, .top_p = 0.9, .min_p = 0.2}, logits);
    EXPECT_EQ(support_of(got).size(), list.size());
    for (size_t i = 0; i < list.size(); ++i)
        EXPECT_NEAR(got[static_cast<size_t>(list[i].id)], expected[i], 1e-6);
}

TEST(Sampler, OrderOfStepsMattersAndCanBeChosen) {
    const auto logits = random_logits(8, 100);
    SamplerParams p{.temperature = 3, .top_k = 20, .top_p = 0.6};
    const OracleList plain = oracle_list(logits);
    OracleList hot = plain;
    for (auto& t : hot) t.logit /= 3;

    EXPECT_EQ(support_of(distribution(p, logits)).size(),
              oracle_top_p(oracle_top_k(hot, 20), 0.6).size());
    p.temperature_last = true;
    EXPECT_EQ(support_of(distribution(p, logits)).size(),
              oracle_top_p(oracle_top_k(plain, 20), 0.6).size());
    p.samplers = {"temperature", "top_p", "top_k"};  // now temperature_last does not count
    EXPECT_EQ(support_of(distribution(p, logits)).size(),
              oracle_top_k(oracle_top_p(hot, 0.6), 20).size());
    p.samplers = {"top_k"};  // steps left out are skipped
    EXPECT_EQ(support_of(distribution(p, logits)).size(), 20u);
}

TEST(Sampler, TemperatureLastScalesOnlyWhatIsLeft) {
    const auto logits = random_logits(9, 100);
    OracleList list = oracle_min_p(oracle_list(logits), 0.08);
    for (auto& t : list) t.logit /= 0.8;
    const auto expected = softmax(list);
    const auto got = distribution(recommended_params(), logits);
    EXPECT_EQ(support_of(got).size(), list.size());
    for (size_t i = 0; i < list.size(); ++i)
        EXPECT_NEAR(got[static_cast<size_t>(list[i].id)], expected[i], 1e-6);
}

TEST(Sampler, PenaltiesComeBeforeTheTemperature) {
    std::vector<float> logits = {2, 1, -1};
    const auto got = distribution({.temperature = 2, .repetition_penalty = 1.5}, logits, {0, 2});
    const auto expected = softmax({{0, 2 / 1.5 / 2}, {1, 0.5}, {2, -1.5 / 2}});
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);
}

// Seeds ---------------------------------------------------------------------------------------

TEST(Sampler, DrawsDependOnSeedPositionAndTokenAlone) {
    const Sampler sampler({.temperature = 1.3, .top_p = 0.95});
    const auto generate = [&](uint64_t seed, int steps) {
        SamplerState state = sampler.start(std::vector<int32_t>{1, 2, 3}, seed);
        for (int i = 0; i < steps; ++i)
            state.accept(
                sampler.sample(random_logits(100 + static_cast<uint64_t>(i), 333), state).token);
        return state.history;
    };
    const auto alone = generate(7, 50);
    EXPECT_EQ(generate(7, 50), alone);
    EXPECT_NE(generate(8, 50), alone);

    // Neighbours in a batch, and other threads, do not change a sequence.
    std::vector<SamplerState> batch;
    for (const uint64_t seed : {7u, 8u, 9u})
        batch.push_back(sampler.start(std::vector<int32_t>{1, 2, 3}, seed));
    for (int i = 0; i < 50; ++i)
        for (SamplerState& state : batch)
            state.accept(
                sampler.sample(random_logits(100 + static_cast<uint64_t>(i), 333), state).token);
    EXPECT_EQ(batch[0].history, alone);
    std::vector<int32_t> elsewhere;
    std::thread([&] { elsewhere = generate(7, 50); }).join();
    EXPECT_EQ(elsewhere, alone);
}

TEST(Sampler, TruncationDoesNotChangeADrawItKeeps) {
    // Noise belongs to the token, not to its rank: the same seed finds the same token whether or
    // not unlikely ones were removed, whichever form the list of candidates has.
    const auto logits = random_logits(10, 2000);
    const Sampler plain({}), cut({.top_k = 500}), cut_otherwise({.min_p = 0.001});
    int kept = 0;
    for (uint64_t position = 0; position < 500; ++position) {
        SamplerState state = plain.start({}, 3);
        state.position = position;
        const int32_t token = plain.sample(logits, state).token;
        for (const Sampler* s : {&cut, &cut_otherwise}) {
            const int32_t other = s->sample(logits, state).token;
            const auto left = oracle_top_k(oracle_list(logits), 500);
            const bool stays =
                std::any_of(left.begin(), left.end(), [&](const auto& t) { return t.id == token; });
            if (s == &cut && stays) {
                EXPECT_EQ(other, token);
            }
            kept += other == token ? 1 : 0;
        }
    }
    EXPECT_GT(kept, 700);
}

TEST(Sampler, RewindReturnsToTheSameDraw) {
    const Sampler sampler({});
    const auto logits = random_logits(11, 100);
    SamplerState state = sampler.start(std::vector<int32_t>{5}, 1);
    const int32_t first = sampler.sample(logits, state).token;
    state.accept(first);
    state.accept(sampler.sample(logits, state).token);
    state.rewind(1);
    EXPECT_EQ(state.position, 1u);
    EXPECT_EQ(sampler.sample(logits, state).token, first);
    state.banned = {first};
    EXPECT_NE(sampler.sample(logits, state).token, first);
}

TEST(Sampler, SeedComesFromTheParametersOrTheSystem) {
    EXPECT_EQ(choose_seed({.seed = 0}), 0u);
    EXPECT_EQ(choose_seed({.seed = ~uint64_t{0}}), ~uint64_t{0});
    EXPECT_NE(choose_seed({}), choose_seed({}));
}

TEST(Random, UnitIsNeverOne) {
    EXPECT_LT(to_unit(~uint64_t{0}), 1);
    EXPECT_GT(to_unit(0), 0);
}

// Masks and odd logits --------------------------------------------------------------------------

SampleResult one(const SamplerParams& p, const std::vector<float>& logits,
                 const TokenMask* mask = nullptr) {
    const Sampler sampler(p);
    SamplerState state = sampler.start({}, 4);
    return sampler.sample(logits, state, mask);
}

TEST(Sampler, GreedyTakesTheLowestIdOnATie) {
    const SamplerParams greedy{.temperature = 0};
    EXPECT_EQ(one(greedy, {1, 3, 3, 2}).token, 1);
    EXPECT_EQ(one(greedy, std::vector<float>(1000, 7.0f)).token, 0);
    EXPECT_EQ(one({.top_k = 1}, {1, 3, 3, 2}).token, 1);
    EXPECT_EQ(one({.top_p = 0}, {1, 3, 3, 2}).token, 1);
    EXPECT_EQ(one(greedy, {1, 3, 3, 2}).probability, 1);
    EXPECT_EQ(one({.temperature = 9e-6}, {1, 3, 3, 2}).token, 1);
    const Sampler penalising({.temperature = 0, .repetition_penalty = 2});
    SamplerState state = penalising.start(std::vector<int32_t>{1}, 0);
    EXPECT_EQ(penalising.sample(std::vector<float>{1, 3, 2.5f}, state).token, 2);
}

TEST(Sampler, OneTokenAndHugeLogits) {
    EXPECT_EQ(one({}, {-5}).token, 0);
    EXPECT_EQ(one({}, {-5}).probability, 1);
    for (const float big : {1e5f, 3e38f, kInf})
        for (const SamplerParams& p :
             {SamplerParams{}, SamplerParams{.temperature = 1e-4}, SamplerParams{.temperature = 5},
              SamplerParams{.temperature = 0}, SamplerParams{.typical = 0.5},
              SamplerParams{.tfs = 0.5}, SamplerParams{.top_n_sigma = 1},
              SamplerParams{.smoothing_factor = 1, .smoothing_curve = 2},
              SamplerParams{.min_temp = 0, .max_temp = 2}, SamplerParams{.mirostat_mode = 1},
              SamplerParams{.mirostat_mode = 2}, SamplerParams{.xtc_probability = 1}})
            EXPECT_EQ(one(p, {-big, 0, big, 3, -big}).token, 2) << big;
    // Equal huge logits are a fair choice.
    expect_drawn_like({}, {1e5f, 1e5f, 1e5f, -1e5f}, {1.0 / 3, 1.0 / 3, 1.0 / 3, 0});
}

TEST(Sampler, NanCountsAsRemoved) {
    expect_drawn_like({}, {kNan, 0, -kInf, 0, kNan}, {0, 0.5, 0, 0.5, 0});
    EXPECT_EQ(one({}, {kNan, -kInf, -2}).token, 2);
    for (const auto& bad : {std::vector<float>{}, std::vector<float>{kNan},
                            std::vector<float>(37, -kInf), std::vector<float>(5, kNan)})
        for (const SamplerParams& p : {SamplerParams{}, SamplerParams{.temperature = 0}}) {
            const SampleResult r = one(p, bad);
            EXPECT_EQ(r.status, SampleStatus::no_logits);
            EXPECT_EQ(r.token, -1);
            EXPECT_FALSE(describe(r.status).empty());
        }
}

TEST(Sampler, MasksBansAndBias) {
    const std::vector<float> logits(70, 1.0f);
    TokenMask mask(70);
    for (const int id : {3, 31, 32, 69}) mask.set(id);
    std::vector<double> expected(70, 0.0);
    for (const int id : {3, 31, 32, 69}) expected[static_cast<size_t>(id)] = 0.25;
    const Sampler sampler({});
    SamplerState state = sampler.start({}, 4);
    std::vector<int> count(70, 0);
    for (; state.position < 400; ++state.position)
        ++count[static_cast<size_t>(sampler.sample(logits, state, &mask).token)];
    for (size_t i = 0; i < 70; ++i) EXPECT_EQ(count[i] > 0, mask.allows(static_cast<int32_t>(i)));

    EXPECT_EQ(one({.banned_tokens = {3, 31}, .allowed_tokens = {31, 69}}, logits, &mask).token, 69);
    // Tokens beyond a short mask are forbidden.
    EXPECT_EQ(one({.logit_bias = {{40, 100}}}, logits, nullptr).token, 40);
    TokenMask shorter(4);
    shorter.set(2);
    EXPECT_EQ(one({.logit_bias = {{40, 100}}}, logits, &shorter).token, 2);
    EXPECT_EQ(one({.banned_tokens = {2}}, logits, &shorter).status, SampleStatus::all_banned);
    EXPECT_EQ(one({.logit_bias = {{0, -kInf}, {1, kInf}, {1, kNan}}}, {5, 1}).token, 1);
    const auto biased = distribution({.logit_bias = {{0, 1.5}, {1, -0.5}}}, {0, 0, 0});
    const auto by_hand = softmax({{0, 1.5}, {1, -0.5}, {2, 0}});
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(biased[i], by_hand[i], 1e-6);
}

TEST(Sampler, TheMaskComesBeforeTruncation) {
    TokenMask mask(100);
    mask.set(7);
    mask.set(50);
    std::vector<float> logits(100, 10.0f);
    logits[7] = -3;
    logits[50] = -2;
    EXPECT_EQ(one({.top_k = 1}, logits, &mask).token, 50);
}

TEST(Sampler, PaddingOfTheVocabularyIsNeverDrawn) {
    auto vocab = std::make_shared<SamplerVocab>(
        make_sampler_vocab({"a", "b", "c"}, [](int32_t) { return false; }));
    const std::vector<float> logits = {1, 2, 1.5f, 50, kInf};
    const Sampler greedy({.temperature = 0, .logprobs = 10}, vocab);
    SamplerState state = greedy.start({}, 0);
    const SampleResult r = greedy.sample(logits, state);
    EXPECT_EQ(r.token, 1);
    EXPECT_EQ(r.top.size(), 3u);
    EXPECT_NEAR(std::exp(r.logprob), softmax({{0, 1}, {1, 2}, {2, 1.5}})[1], 1e-6);
}

TEST(Sampler, LogprobsBeforeAndAfterSampling) {
    const auto logits = random_logits(12, 50);
    const auto raw = softmax(oracle_list(logits));
    SamplerParams p{.temperature = 0.5, .top_k = 3, .logprobs = 5};
    p.logit_bias = {{17, 100}};
    const SampleResult before = one(p, logits);
    EXPECT_EQ(before.token, 17);
    EXPECT_NEAR(before.logprob, std::log(raw[17]), 1e-5);
    OracleList list = oracle_list(logits);
    sort_descending(list);
    ASSERT_EQ(before.top.size(), 5u);
    for (size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(before.top[i].token, list[i].id);
        EXPECT_NEAR(before.top[i].logprob, std::log(raw[static_cast<size_t>(list[i].id)]), 1e-5);
    }
    p.logprob_mode = LogprobMode::processed;
    const SampleResult after = one(p, logits);
    EXPECT_EQ(after.top.size(), 3u);  // what top-k left
    EXPECT_EQ(after.top[0].token, 17);
    EXPECT_NEAR(after.logprob, 0, 1e-6);
    EXPECT_EQ(one({.logprobs = 0}, logits).top.size(), 0u);
    EXPECT_LT(one({.logprobs = 0}, logits).logprob, 0);
    EXPECT_EQ(one({}, logits).logprob, 0);
    // Equal logits are listed by id.
    const SampleResult equal = one({.logprobs = 3}, std::vector<float>(9, 1.0f));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(equal.top[static_cast<size_t>(i)].token, i);
}

// Any parameters that pass the check, on any logits, give a token that may be drawn or a status.
TEST(Sampler, SurvivesRandomParametersAndLogits) {
    Random random(77);
    auto vocab = std::make_shared<SamplerVocab>(make_sampler_vocab(
        std::vector<std::string>(40, "a\n"), [](int32_t id) { return id == 3; }));
    const auto value = [&](double most) { return random.coin() ? 0 : most * random.uniform(); };
    const float odd[] = {kNan, kInf, -kInf, 1e30f, -3e38f, 0.0f, -0.0f, 1e-40f, 5.0f};
    for (int trial = 0; trial < 4000; ++trial) {
        SamplerParams p;
        for (const ParamInfo& info : sampler_param_table())
            if (random.below(3) == 0) {
                if (const auto* real = std::get_if<double SamplerParams::*>(&info.field))
                    p.** real = info.min + value(std::min(info.max - info.min, 20.0));
                else if (const auto* whole = std::get_if<int SamplerParams::*>(&info.field))
                    p.** whole =
                        static_cast<int>(info.min + value(std::min(info.max - info.min, 50.0)));
                else if (const auto* flag = std::get_if<bool SamplerParams::*>(&info.field))
                    p.** flag = random.coin();
            }
        if (p.repetition_penalty <= 0 || p.temp_exponent <= 0) continue;
        ASSERT_FALSE(check_params(p, 40)) << check_params(p, 40)->what();
        std::vector<float> logits(1 + random.below(50));
        for (float& l : logits)
            l = random.below(4) == 0 ? odd[random.below(std::size(odd))]
                                     : static_cast<float>(4 * random.normal());
        TokenMask mask(40);
        for (int id = 0; id < 40; ++id) mask.set(id, random.coin());
        const Sampler sampler(p, vocab);
        SamplerState state = sampler.start({}, random.next());
        for (int i = 0; i < 30; ++i) {
            const SampleResult r = sampler.sample(logits, state, random.coin() ? &mask : nullptr);
            if (r.status != SampleStatus::ok) continue;
            ASSERT_GE(r.token, 0);
            ASSERT_LT(r.token, 40);
            ASSERT_GT(logits[static_cast<size_t>(r.token)], -kInf);
            ASSERT_TRUE(r.probability > 0 && r.probability <= 1.000001f) << r.probability;
            ASSERT_TRUE(std::isfinite(r.logprob));
            state.accept(r.token);
        }
    }
}

}  // namespace
}  // namespace exl3::test
