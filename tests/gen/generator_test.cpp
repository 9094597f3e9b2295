#include "gen/generator.h"

#include <gtest/gtest.h>

#include "gen/complete.h"
#include "support/tales.h"

namespace exl3::test {
namespace {

Generator make_generator(GeneratorOptions o = {}) {
    Tales& t = Tales::get();
    return Generator(t.model, t.tokenizer, *t.device, o);
}

JobRequest request(std::vector<int32_t> prompt, int64_t n, uint64_t seed = 1,
                   SamplerParams params = {.temperature = 0}) {
    return {.prompt = std::move(prompt),
            .max_new_tokens = n,
            .sampler = Tales::get().sampler(std::move(params)),
            .seed = seed};
}

Outcome run(Generator& g, JobRequest r) {
    JobHandle job = g.submit(std::move(r));
    return wait_for(job);
}

TEST(Generator, WritesWhatOneJobAloneWrites) {
    Tales& t = Tales::get();
    const auto prompt = t.tokens(0, 40);
    const auto stream = t.device->make_stream();
    const Completion want = complete(*t.model, t.tokenizer, *stream, *t.greedy(),
                                     {.prompt = prompt, .max_new_tokens = 60});
    Generator g = make_generator();
    const Outcome got = run(g, request(prompt, 60));
    EXPECT_EQ(got.text, want.text);
    EXPECT_EQ(got.result.end, JobEnd::max_new_tokens);
    EXPECT_EQ(got.result.new_tokens, 60);
    EXPECT_EQ(got.result.prompt_tokens, 40);
    EXPECT_EQ(got.tokens.size(), 60u);
    EXPECT_EQ(t.tokenizer.decode(got.ids(), {.continues = true}), got.text);
}

TEST(Generator, WritesExactlyAsManyTokensAsAsked) {
    Generator g = make_generator({.cache_tokens = 1024});
    for (const int n : {0, 1, 2, 255, 256, 257}) {
        JobRequest r = request(Tales::get().tokens(100, 5), n);
        r.stop.tokens = {};  // not even the end of a text ends it
        const Outcome got = run(g, std::move(r));
        EXPECT_EQ(got.result.new_tokens, n);
        EXPECT_EQ(static_cast<int>(got.tokens.size()), n);
        EXPECT_EQ(got.result.end, JobEnd::max_new_tokens);
        EXPECT_EQ(got.text.empty(), n == 0);
    }
}

TEST(Generator, NeighboursDoNotChangeAText) {
    std::vector<JobRequest> requests;
    for (int i = 0; i < 8; ++i)
        requests.push_back(request(
            Tales::get().tokens(static_cast<size_t>(1000 * i), static_cast<size_t>(1 + 90 * i)),
            20 + 5 * i, static_cast<uint64_t>(i), {.temperature = 0.9, .min_p = 0.02}));
    std::vector<Outcome> alone;
    for (const JobRequest& r : requests) {
        Generator g = make_generator();
        alone.push_back(run(g, r));
    }
    Generator g = make_generator({.cache_tokens = 16384});
    std::vector<JobHandle> jobs;
    for (const JobRequest& r : requests) jobs.push_back(g.submit(r));
    for (size_t i = 0; i < jobs.size(); ++i) {
        const Outcome together = wait_for(jobs[i]);
        EXPECT_EQ(together.text, alone[i].text) << i;
        EXPECT_EQ(together.ids(), alone[i].ids()) << i;
    }
    EXPECT_LT(g.stats().steps, 200);  // they did run together
}

TEST(Generator, ASecondTurnFindsTheFirstInTheCache) {
    Generator g = make_generator();
    auto prompt = Tales::get().tokens(0, 700);
    const Outcome first = run(g, request(prompt, 40));
    EXPECT_EQ(first.result.cached_tokens, 0);
    const Outcome again = run(g, request(prompt, 40));
    EXPECT_EQ(again.result.cached_tokens, 699);  // all but the token that is always read
    EXPECT_EQ(again.text, first.text);

    for (const int32_t id : first.ids()) prompt.push_back(id);
    for (const int32_t id : Tales::get().tokens(5000, 20)) prompt.push_back(id);
    const Outcome second = run(g, request(prompt, 10));
    EXPECT_EQ(second.result.cached_tokens, 739);  // the answer's last token was never read
    Generator fresh = make_generator();
    EXPECT_EQ(run(fresh, request(prompt, 10)).text, second.text);

    JobRequest salted = request(prompt, 10);
    salted.cache_salt = "another user";
    EXPECT_EQ(run(g, std::move(salted)).result.cached_tokens, 0);
}

TEST(Generator, EqualPromptsAtTheSameTimeShareTheirPages) {
    Generator g = make_generator({.cache_tokens = 8192});
    std::vector<JobHandle> jobs;
    for (int i = 0; i < 4; ++i)
        jobs.push_back(g.submit(request(Tales::get().tokens(0, 1100), 20, static_cast<uint64_t>(i),
                                        {.temperature = 1})));
    int64_t cached = 0;
    for (JobHandle& j : jobs) cached += wait_for(j).result.cached_tokens;
    EXPECT_GE(cached, 3 * 1024);
    // Four pages of prompt for all, and for each one more with its own tokens.
    EXPECT_LE(g.stats().pages_cached + g.stats().pages_in_use, 4 + 4);
}

TEST(Generator, AJobAsLargeAsTheCacheWorksAndALargerOneIsRefused) {
    Generator g = make_generator({.cache_tokens = 768});
    EXPECT_EQ(run(g, request(Tales::get().tokens(0, 700), 68)).result.new_tokens, 68);
    try {
        g.submit(request(Tales::get().tokens(0, 700), 69));
        FAIL() << "accepted";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::invalid_argument);
        EXPECT_NE(std::string(e.what()).find("768"), std::string::npos) << e.what();
    }
    EXPECT_THROW(g.submit(request({}, 5)), Error);
    EXPECT_THROW(g.submit(request({4096}, 5)), Error);
    EXPECT_THROW(g.submit(request({-1}, 5)), Error);
    EXPECT_THROW(g.submit(request({1}, -1)), Error);
}

TEST(Generator, JobsThatDoNotFitTogetherTakeTurnsAndStayExact) {
    // Four jobs of three pages on six pages: some must give up theirs on the way.
    std::vector<JobRequest> requests;
    for (size_t i = 0; i < 4; ++i)
        requests.push_back(request(Tales::get().tokens(3000 * i, 200 + i), 330));
    std::vector<std::string> alone;
    for (const JobRequest& r : requests) {
        Generator g = make_generator();
        alone.push_back(run(g, r).text);
    }
    Generator g = make_generator({.cache_tokens = 6 * 256});
    std::vector<JobHandle> jobs;
    for (const JobRequest& r : requests) jobs.push_back(g.submit(r));
    int64_t preemptions = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
        const Outcome o = wait_for(jobs[i]);
        EXPECT_EQ(o.result.new_tokens, 330);
        EXPECT_EQ(o.text, alone[i]) << i;
        preemptions += o.result.preemptions;
    }
    EXPECT_GT(preemptions, 0);
    EXPECT_EQ(g.stats().preemptions, preemptions);
}

TEST(Generator, CancelEndsAJobInEveryPhase) {
    Generator g = make_generator({.cache_tokens = 4096, .max_jobs = 1});
    JobHandle writing = g.submit(request(Tales::get().tokens(0, 300), 3000));
    JobHandle waiting = g.submit(request(Tales::get().tokens(0, 3000), 100));
    JobEvent event;
    while (writing.wait(event, std::chrono::seconds(60)) && event.text.empty()) {
    }
    waiting.cancel();
    EXPECT_EQ(wait_for(waiting).result.end, JobEnd::cancelled);
    writing.cancel();
    const Outcome o = wait_for(writing);
    EXPECT_EQ(o.result.end, JobEnd::cancelled);
    EXPECT_LT(o.result.new_tokens, 3000);
    JobHandle reading = g.submit(request(Tales::get().tokens(1, 3000), 100));
    while (reading.wait(event, std::chrono::seconds(60)) && event.prompt_done == 0) {
    }
    reading.cancel();
    EXPECT_EQ(wait_for(reading).result.end, JobEnd::cancelled);
    EXPECT_FALSE(reading.poll(event));
    { const JobHandle dropped = g.submit(request(Tales::get().tokens(2, 300), 3000)); }
    EXPECT_EQ(run(g, request({5}, 3)).result.new_tokens, 3);  // the dropped one made room
    EXPECT_EQ(g.stats().jobs_cancelled, 4);
}

}  // namespace
}  // namespace exl3::test
