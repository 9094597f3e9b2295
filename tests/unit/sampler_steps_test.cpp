// Each step of the sampler against its definition (support/sampler_oracle.h).
#include "sample/steps.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "sample/exp.h"
#include "support/sampler_oracle.h"

namespace exl3::test {
namespace {

constexpr int kSizes[] = {1, 2, 3, 4, 7, 33, 1001, 4099, 50021};

// Normal logits; optionally rounded to multiples of 1/4, which makes many ties, and with holes.
std::vector<float> random_logits(Random& random, int size, double spread, bool ties, bool holes) {
    std::vector<float> logits(static_cast<size_t>(size));
    for (float& l : logits) {
        const double x = spread * random.normal();
        l = static_cast<float>(ties ? std::round(4 * x) / 4 : x);
        if (holes && random.below(3) == 0) l = kNever;
    }
    if (max_logit(logits) == kNever) logits[0] = 1;
    return logits;
}

Candidates candidates(const std::vector<float>& logits, bool compacted = false) {
    Candidates c;
    c.logit = logits;
    if (compacted) compact(c);
    return c;
}

std::vector<int32_t> ids(Candidates c) {
    compact(c);
    return c.id;
}

std::vector<int32_t> ids(const OracleList& list) {
    std::vector<int32_t> out;
    for (const auto& t : list) out.push_back(t.id);
    std::sort(out.begin(), out.end());
    return out;
}

// Runs a truncation step on many distributions and compares what is left.
template <typename Step, typename Oracle>
void expect_keeps(Step step, Oracle oracle) {
    Random random(11);
    for (const int size : kSizes)
        for (const double spread : {0.3, 2.0, 6.0})
            for (const int form : {0, 1, 2, 3, 4}) {
                if (size > 10000 && (spread != 2.0 || form % 3 != 0)) continue;  // time
                const bool ties = form == 1 || form == 4, holes = form >= 2;
                const auto logits = random_logits(random, size, spread, ties, holes);
                Candidates c = candidates(logits, form == 3);
                step(c);
                EXPECT_EQ(ids(c), ids(oracle(oracle_list(logits))))
                    << "size " << size << " spread " << spread << " form " << form;
            }
}

TEST(SamplerSteps, TopKKeepsExactlyKAndTheLowerIdOnATie) {
    for (const int k : {1, 2, 5, 40, 700, 30000})
        expect_keeps([&](Candidates& c) { keep_top_k(c, k); },
                     [&](const OracleList& l) { return oracle_top_k(l, static_cast<size_t>(k)); });
}

TEST(SamplerSteps, TopPKeepsTheCrossingToken) {
    for (const double p : {0.0, 0.1, 0.5, 0.9, 0.999})
        expect_keeps([&](Candidates& c) { keep_top_p(c, p); },
                     [&](const OracleList& l) { return oracle_top_p(l, p); });
    Candidates c = candidates({std::log(0.25f), std::log(0.5f), std::log(0.25f)});
    keep_top_p(c, 0.6);
    EXPECT_EQ(ids(c), (std::vector<int32_t>{0, 1}));
}

TEST(SamplerSteps, MinP) {
    for (const double q : {1e-4, 0.05, 0.5, 1.0})
        expect_keeps([&](Candidates& c) { keep_min_p(c, q); },
                     [&](const OracleList& l) { return oracle_min_p(l, q); });
}

TEST(SamplerSteps, TopA) {
    for (const double a : {0.01, 0.2, 1.0})
        expect_keeps([&](Candidates& c) { keep_top_a(c, a); },
                     [&](const OracleList& l) { return oracle_top_a(l, a); });
}

TEST(SamplerSteps, Typical) {
    for (const double mass : {0.0, 0.2, 0.9, 0.99})
        expect_keeps([&](Candidates& c) { keep_typical(c, mass); },
                     [&](const OracleList& l) { return oracle_typical(l, mass); });
}

TEST(SamplerSteps, TailFree) {
    for (const double z : {0.0, 0.3, 0.9, 0.99})
        expect_keeps([&](Candidates& c) { keep_tail_free(c, z); },
                     [&](const OracleList& l) { return oracle_tail_free(l, z); });
}

TEST(SamplerSteps, TopNSigma) {
    for (const double n : {0.5, 1.0, 2.5})
        expect_keeps([&](Candidates& c) { keep_top_n_sigma(c, n); },
                     [&](const OracleList& l) { return oracle_top_n_sigma(l, n); });
}

TEST(SamplerSteps, NeutralSettingsKeepEverything) {
    Random random(3);
    const auto logits = random_logits(random, 500, 3, false, false);
    Candidates c = candidates(logits);
    keep_top_k(c, 500);
    keep_top_p(c, 1);
    keep_min_p(c, 0);
    keep_top_a(c, 0);
    keep_typical(c, 1);
    keep_tail_free(c, 1);
    keep_top_n_sigma(c, -1);
    EXPECT_EQ(c.logit, logits);
}

TEST(SamplerSteps, ExpIsAccurateToAFewUnitsInTheLastPlace) {
    for (double x = 0; x > -87; x -= 0.00137) {
        const float f = static_cast<float>(x);
        const double exact = std::exp(static_cast<double>(f));
        ASSERT_NEAR(exp_negative(splat4(f))[2] / exact, 1, 3e-7) << f;
    }
    EXPECT_EQ(exp_negative(splat4(0))[0], 1);
    EXPECT_EQ(exp_negative(splat4(kNever))[0], 0);
    EXPECT_EQ(exp_negative(splat4(-1e30f))[0], 0);
}

// The distribution c stands for, over all tokens of the vocabulary.
std::vector<double> distribution(Candidates& c, size_t vocab) {
    std::vector<double> p(vocab, 0.0);
    const double total = weigh(c);
    for (size_t i = 0; i < c.size(); ++i) p[static_cast<size_t>(c.id_at(i))] = c.weight[i] / total;
    return p;
}

void expect_distribution(Candidates& c, const OracleList& list, size_t vocab) {
    std::vector<double> expected(vocab, 0.0);
    const auto p = softmax(list);
    for (size_t i = 0; i < list.size(); ++i) expected[static_cast<size_t>(list[i].id)] = p[i];
    const auto got = distribution(c, vocab);
    for (size_t i = 0; i < vocab; ++i)
        ASSERT_NEAR(got[i], expected[i], 1e-5 * expected[i] + 1e-9) << "token " << i;
}

TEST(SamplerSteps, TemperatureSmoothingAndDynamicTemperature) {
    Random random(5);
    for (const int size : kSizes)
        for (const SamplerParams& p : {
                 SamplerParams{.temperature = 0.3},
                 SamplerParams{.temperature = 2.5},
                 SamplerParams{.smoothing_factor = 0.4},
                 SamplerParams{.temperature = 1.7, .smoothing_factor = 0.2, .smoothing_curve = 2},
                 SamplerParams{.smoothing_factor = 0.3, .smoothing_curve = 5},
                 SamplerParams{.temperature = 3, .min_temp = 0.4, .max_temp = 2},
                 SamplerParams{.min_temp = 0.1, .max_temp = 1.5, .temp_exponent = 0.5},
             }) {
            const auto logits = random_logits(random, size, 2, false, size > 5);
            OracleList list = oracle_list(logits);
            double most = -1e300;
            for (const auto& t : list) most = std::max(most, t.logit);
            if (p.smoothing_factor > 0)
                for (auto& t : list) {
                    const double d = t.logit - most, k = (3 - p.smoothing_curve) / 2,
                                 j = (p.smoothing_curve - 1) / 2;
                    t.logit =
                        most - p.smoothing_factor * k * d * d + p.smoothing_factor * j * d * d * d;
                }
            double t = p.temperature;
            if (p.max_temp > p.min_temp && list.size() > 1) {
                const double share =
                    entropy(softmax(list)) / std::log(static_cast<double>(list.size()));
                t = p.min_temp + (p.max_temp - p.min_temp) * std::pow(share, p.temp_exponent);
            }
            for (auto& token : list) token.logit /= t;

            Candidates c = candidates(logits);
            apply_temperature(c, p);
            expect_distribution(c, list, logits.size());
        }
}

// Repetition, presence and frequency penalties, one token and one occurrence at a time.
OracleList penalised(OracleList list, const SamplerParams& p, const SamplerState& state) {
    const int length = static_cast<int>(state.history.size());
    const int full = p.penalty_range < 0 ? length : p.penalty_range;
    for (auto& t : list) {
        double most = 0, most_counted = 0, sum_counted = 0;
        for (int i = 0; i < length; ++i) {
            if (state.history[static_cast<size_t>(i)] != t.id) continue;
            const int distance = length - i;
            double f = distance <= full ? 1 : 0;
            if (distance > full && p.repetition_decay > 0)
                f = std::max(0.0, 1 - static_cast<double>(distance - full) / p.repetition_decay);
            most = std::max(most, f);
            if (i < static_cast<int>(state.prompt_tokens) && !p.penalize_prompt) continue;
            most_counted = std::max(most_counted, f);
            sum_counted += f;
        }
        const double r = p.repetition_penalty, w = t.logit > 0 ? t.logit / r : t.logit * r;
        t.logit = (1 - most) * t.logit + most * w;
        t.logit -= p.presence_penalty * most_counted + p.frequency_penalty * sum_counted;
    }
    return list;
}

TEST(SamplerSteps, Penalties) {
    Random random(6);
    for (const SamplerParams& p : {
             SamplerParams{.repetition_penalty = 1.3},
             SamplerParams{.repetition_penalty = 0.8, .penalty_range = 20},
             SamplerParams{.presence_penalty = 0.7, .frequency_penalty = 0.1},
             SamplerParams{
                 .presence_penalty = -0.7, .frequency_penalty = -0.2, .penalize_prompt = true},
             SamplerParams{.repetition_penalty = 1.5,
             .presence_penalty = 0.5,
             .frequency_penalty = 0.3,
             .penalty_range = 10,
             .repetition_decay = 15},
             SamplerParams{.repetition_penalty = 1.5, .penalty_range = 0, .repetition_decay = 8},
             SamplerParams{.repetition_penalty = 1.5, .frequency_penalty = 1, .penalty_range = 0},
         })
        for (const int size : {1, 5, 61}) {
            const auto logits = random_logits(random, size, 2, false, size > 5);
            SamplerState state;
            state.prompt_tokens = 17;
            for (int i = 0; i < 40; ++i)
                state.history.push_back(static_cast<int32_t>(random.below(70)));
            state.history[30] = 1000000007;  // an image position
            state.history[31] = -1;
            for (const bool compacted : {false, true}) {
                Candidates c = candidates(logits, compacted);
                apply_penalties(c, p, state);
                expect_distribution(c, penalised(oracle_list(logits), p, state), logits.size());
            }
        }
}

TEST(SamplerSteps, PenaltiesAfterTheTemperatureSeeScaledLogits) {
    // The sign of a logit decides between l / r and l * r, so a shift would show.
    const std::vector<float> logits = {-3, -1, -2.5f, -4};
    SamplerState state;
    state.history = {1, 2};
    const SamplerParams p{.temperature = 0.5, .repetition_penalty = 2};
    Candidates c = candidates(logits);
    apply_temperature(c, p);
    apply_penalties(c, p, state);
    expect_distribution(c, {{0, -6}, {1, -4}, {2, -10}, {3, -8}}, 4);
}

SamplerVocab letters() {
    // Token i is the i-th letter; 26 on are texts with breakers in them.
    std::vector<std::string> pieces;
    for (char ch = 'a'; ch <= 'z'; ++ch) pieces.emplace_back(1, ch);
    for (const char* text : {"\n", "x\ny", "#", "##", "", "\xe2\x82", "\xac"})
        pieces.emplace_back(text);
    return make_sampler_vocab(std::move(pieces), [](int32_t) { return false; });
}

TEST(SamplerSteps, BreakersAreFoundWhateverTokensTheyAreMadeOf) {
    const SamplerVocab vocab = letters();
    const std::vector<std::string> breakers = {"\n", "###", "\xe2\x82\xac"};
    const auto after = [&](const std::vector<int32_t>& history) {
        return tokens_after_breaker(history, vocab, breakers);
    };
    EXPECT_EQ(after({0, 1, 2}), 3u);
    EXPECT_EQ(after({26, 0, 1, 2}), 3u);
    EXPECT_EQ(after({0, 27, 1}), 1u);
    EXPECT_EQ(after({0, 28, 28, 28, 1, 2}), 2u);
    EXPECT_EQ(after({0, 28, 29, 1, 2}), 2u);  // # ##
    EXPECT_EQ(after({0, 29, 29, 1, 2, 3}), 3u);
    EXPECT_EQ(after({0, 28, 30, 29, 1}), 1u);  // an empty piece in between
    EXPECT_EQ(after({0, 29, 1, 2}), 4u);
    EXPECT_EQ(after({31, 32, 5}), 1u);               // a character of two tokens
    EXPECT_EQ(after({28, 28, 1000000001, 28}), 4u);  // an image separates
    EXPECT_EQ(after({26}), 0u);
    EXPECT_EQ(after({}), 0u);
}

TEST(SamplerSteps, DryAgreesWithTryingEveryPlace) {
    const SamplerVocab vocab = letters();
    Random random(8);
    for (int trial = 0; trial < 300; ++trial) {
        SamplerState state;
        const uint64_t alphabet = 2 + random.below(4), length = random.below(60);
        for (uint64_t i = 0; i < length; ++i)
            state.history.push_back(random.below(25) == 0
                                        ? static_cast<int32_t>(26 + random.below(2))
                                        : static_cast<int32_t>(random.below(alphabet)));
        SamplerParams p{.dry_multiplier = 0.8};
        p.dry_allowed_length = static_cast<int>(random.below(4));
        p.dry_base = 1 + random.uniform();
        p.dry_range = trial % 3 == 0 ? 20 : -1;
        p.dry_sequence_breakers = {"\n"};
        const auto logits = random_logits(random, vocab.size, 1, false, false);

        std::vector<int32_t> window = state.history;
        if (p.dry_range >= 0 && window.size() > 20) window.erase(window.begin(), window.end() - 20);
        int limit = 0;
        while (limit < static_cast<int>(window.size()) &&
               window[window.size() - 1 - static_cast<size_t>(limit)] < 26)
            ++limit;
        OracleList list = oracle_list(logits);
        for (auto& t : list) {
            if (t.id == 26 || t.id == 27) continue;
            const int n = oracle_phrase(window, t.id, limit);
            if (n >= 1 && n >= p.dry_allowed_length)
                t.logit -= 0.8 * std::pow(p.dry_base, n - p.dry_allowed_length);
        }
        Candidates c = candidates(logits);
        apply_dry(c, p, state, &vocab);
        expect_distribution(c, list, logits.size());
    }
}

TEST(SamplerSteps, DryStaysFiniteOnALongRepetition) {
    SamplerState state;
    state.history.assign(5000, 0);
    Candidates c = candidates({1, 2});
    apply_dry(c, {.dry_multiplier = 100, .dry_base = 100}, state, nullptr);
    EXPECT_TRUE(std::isfinite(c.logit[0]));
    EXPECT_EQ(distribution(c, 2), (std::vector<double>{0, 1}));
}

TEST(SamplerSteps, XtcInBothForms) {
    SamplerVocab vocab = letters();
    vocab.xtc_protected.set(3);
    // 0.3 0.2 0.2 0.15(protected) 0.1 0.05
    std::vector<float> logits;
    const std::vector<double> p = {0.3, 0.2, 0.2, 0.15, 0.1, 0.05};
    for (const double x : p) logits.push_back(static_cast<float>(std::log(x)));
    // Candidates from 0.12 up: 0, 1, 2 (3 is protected). The least likely is 2, of higher id
    // than 1.
    const double excluded = 0.5;
    SamplerParams params{.xtc_probability = 0.4, .xtc_threshold = 0.12};
    Candidates c = candidates(logits);
    apply_xtc(c, params, &vocab, 0.9);
    const auto got = distribution(c, 6);
    for (size_t i = 0; i < 6; ++i) {
        const double dropped = i < 2 ? 0 : p[i] / (1 - excluded);
        EXPECT_NEAR(got[i], 0.6 * p[i] + 0.4 * dropped, 1e-6) << i;
    }

    params.xtc_random = true;
    for (const double roll : {0.39, 0.41}) {
        c = candidates(logits);
        apply_xtc(c, params, &vocab, roll);
        EXPECT_EQ(ids(c).size(), roll < 0.4 ? 4u : 6u);
    }
    params = {.xtc_probability = 1, .xtc_threshold = 0.12};
    c = candidates(logits);
    apply_xtc(c, params, &vocab, 0.5);
    EXPECT_EQ(ids(c), (std::vector<int32_t>{2, 3, 4, 5}));
    params.xtc_threshold = 0.51;
    c = candidates(logits);
    apply_xtc(c, params, &vocab, 0.5);
    EXPECT_EQ(c.logit, logits);
}

TEST(SamplerSteps, MirostatTwoKeepsWhatSurprisesLessThanMu) {
    Random random(9);
    for (const int size : kSizes)
        for (const double mu : {-1.0, 0.5, 3.0, 9.0}) {
            const auto logits = random_logits(random, size, 2, false, size > 5);
            OracleList list = oracle_list(logits), expected;
            sort_descending(list);
            const auto p = softmax(list);
            for (size_t i = 0; i < list.size(); ++i)
                if (i == 0 || -std::log2(p[i]) <= mu) expected.push_back(list[i]);
            Candidates c = candidates(logits);
            keep_mirostat(c, {.mirostat_mode = 2}, {.mirostat_mu = mu}, size);
            EXPECT_EQ(ids(c), ids(expected)) << size << " " << mu;
        }
}

TEST(SamplerSteps, MirostatOneKeepsTheRankOfItsZipfFit) {
    Random random(10);
    for (const int size : {2, 7, 101, 5003})
        for (const double mu : {1.0, 4.0, 8.0}) {
            const auto logits = random_logits(random, size, 2, false, false);
            OracleList list = oracle_list(logits);
            sort_descending(list);
            const auto p = softmax(list);
            double tb = 0, tt = 0;
            for (size_t i = 0; i + 1 < std::min<size_t>(p.size(), 100); ++i) {
                const double t =
                    std::log((static_cast<double>(i) + 2) / (static_cast<double>(i) + 1));
                tb += t * std::log(p[i] / p[i + 1]);
                tt += t * t;
            }
            const double s = tb / tt, e = s - 1;
            const double k = std::pow(e * std::exp2(mu) / (1 - std::pow(size, -e)), 1 / s);
            const double kept = std::clamp(std::floor(k), 1.0, static_cast<double>(size));
            Candidates c = candidates(logits);
            keep_mirostat(c, {.mirostat_mode = 1}, {.mirostat_mu = mu}, size);
            EXPECT_EQ(ids(c), ids(oracle_top_k(list, static_cast<size_t>(kept))))
                << size << " " << mu;
        }
    // Equal tokens: a choice among 2^mu of them has surprise mu.
    Candidates c = candidates(std::vector<float>(64, 1.0f));
    keep_mirostat(c, {.mirostat_mode = 1}, {.mirostat_mu = 4}, 64);
    EXPECT_EQ(c.size(), 16u);
}

TEST(SamplerSteps, MirostatMovesMuTowardsItsTarget) {
    const SamplerParams p{.mirostat_mode = 2, .mirostat_tau = 3, .mirostat_eta = 0.2};
    SamplerMemory memory = start_memory(p);
    EXPECT_DOUBLE_EQ(memory.mirostat_mu, 6);
    update_mirostat(memory, p, 1.0 / 32);  // 5 bits
    EXPECT_DOUBLE_EQ(memory.mirostat_mu, 6 - 0.2 * 2);
}

TEST(SamplerSteps, AdaptivePFavoursTheProbabilityItLacks) {
    const SamplerParams p{.adaptive_target = 0.4, .adaptive_decay = 0.8};
    SamplerMemory memory = start_memory(p);
    EXPECT_NEAR(memory.adaptive_sum, 0.4 / 0.2, 1e-12);
    EXPECT_NEAR(memory.adaptive_weight, 1 / 0.2, 1e-12);
    memory = {.adaptive_sum = 1.2, .adaptive_weight = 2};  // average 0.6, so the goal is 0.2
    Random random(12);
    const auto logits = random_logits(random, 200, 3, false, true);
    OracleList list = oracle_list(logits), expected;
    const auto prob = softmax(list);
    for (size_t i = 0; i < list.size(); ++i) {
        const double x = std::abs(prob[i] - 0.2) / 0.3;
        if (prob[i] >= 1e-8) expected.push_back({list[i].id, 5 - 10 * x * x / (1 + x)});
    }
    Candidates c = candidates(logits);
    const double total = apply_adaptive(c, p, memory);
    EXPECT_NEAR(c.weight[static_cast<size_t>(list[0].id)] / total, prob[0], 1e-6);
    expect_distribution(c, expected, logits.size());
    update_adaptive(memory, p, 0.25);
    EXPECT_NEAR(memory.adaptive_sum, 0.25 + 0.8 * 1.2, 1e-12);
    EXPECT_NEAR(memory.adaptive_weight, 1 + 0.8 * 2, 1e-12);
}

}  // namespace
}  // namespace exl3::test
