#include <gtest/gtest.h>

#include "support/tales.h"

namespace exl3::test {
namespace {

std::vector<Outcome> run_all(const std::vector<JobRequest>& requests, GeneratorOptions o,
                             GeneratorStats* stats = nullptr) {
    Tales& t = Tales::get();
    Generator g(t.model, t.tokenizer, *t.device, o);
    std::vector<JobHandle> jobs;
    for (const JobRequest& r : requests) jobs.push_back(g.submit(r));
    std::vector<Outcome> all;
    for (JobHandle& j : jobs) all.push_back(wait_for(j));
    if (stats) *stats = g.stats();
    return all;
}

// Texts with repetitions, greedy and drawn, that end at every kind of place.
std::vector<JobRequest> requests() {
    Tales& t = Tales::get();
    std::vector<JobRequest> all;
    for (size_t i = 0; i < 6; ++i) {
        std::vector<int32_t> prompt = t.tokens(2000 * i, 120);
        prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 80);
        SamplerParams params{.temperature = i % 2 == 0 ? 0.0 : 0.7};
        JobRequest r{.prompt = std::move(prompt),
                     .max_new_tokens = static_cast<int64_t>(1 + 25 * i),
                     .sampler = t.sampler(std::move(params)),
                     .seed = i};
        if (i == 4) r.banned_strings = {" the", " and"};
        if (i == 5) r.stop.strings = {" was"};
        all.push_back(std::move(r));
    }
    return all;
}

void expect_equal(const std::vector<Outcome>& a, const std::vector<Outcome>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].text, b[i].text) << i;
        EXPECT_EQ(a[i].ids(), b[i].ids()) << i;
        EXPECT_EQ(a[i].result.new_tokens, b[i].result.new_tokens) << i;
        EXPECT_EQ(a[i].result.end, b[i].result.end) << i;
    }
}

TEST(Speculation, LookingUpChangesNothingButTheNumberOfSteps) {
    GeneratorStats plain, drafted;
    const auto want = run_all(requests(), {.cache_tokens = 4096}, &plain);
    const auto got = run_all(
        requests(), {.cache_tokens = 4096, .max_drafts = 6, .ngram = {.least = 2}}, &drafted);
    expect_equal(want, got);
    EXPECT_GT(drafted.accepted_drafts, 0);
    EXPECT_LT(drafted.steps, plain.steps);
    EXPECT_EQ(drafted.new_tokens, plain.new_tokens);
}

TEST(Speculation, ADraftModelChangesNothingButTheNumberOfSteps) {
    // Drafted by itself: greedy guesses always hold, and the steps become few.
    GeneratorOptions o{.cache_tokens = 4096, .max_drafts = 4};
    o.draft_model = Tales::get().model;
    GeneratorStats plain, drafted;
    const auto want = run_all(requests(), {.cache_tokens = 4096}, &plain);
    const auto got = run_all(requests(), o, &drafted);
    expect_equal(want, got);
    EXPECT_LT(drafted.steps, plain.steps);
    EXPECT_EQ(got[2].result.rejected_drafts, 0);
    EXPECT_GE(got[2].result.accepted_drafts, 35);  // of 51 tokens
    EXPECT_EQ(got[2].result.new_tokens, 51);
}

TEST(Speculation, WindowsOfOneJobCanBeSwitchedOff) {
    std::vector<JobRequest> r = requests();
    for (JobRequest& one : r) one.max_drafts = 0;
    GeneratorStats stats;
    run_all(r, {.cache_tokens = 4096, .max_drafts = 6, .ngram = {.least = 2}}, &stats);
    EXPECT_EQ(stats.drafted, 0);
}

TEST(Speculation, WorksWherePagesAreShort) {
    GeneratorOptions small{.cache_tokens = 3 * 256, .max_drafts = 6, .ngram = {.least = 2}};
    expect_equal(run_all(requests(), {.cache_tokens = 4096}), run_all(requests(), small));
}

}  // namespace
}  // namespace exl3::test
