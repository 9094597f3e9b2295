// Random jobs on a tiny cache, step by step: whatever happens, the books balance.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/random.h"
#include "gen/engine.h"
#include "support/tales.h"

namespace exl3::test {
namespace {

JobRequest random_request(Random& random) {
    Tales& t = Tales::get();
    JobRequest r;
    // A few beginnings that repeat, so that pages are shared, and lengths around page borders.
    const size_t lengths[] = {1, 2, 100, 255, 256, 257, 400, 513};
    r.prompt = t.tokens(300 * random.below(3), lengths[random.below(8)]);
    if (random.coin()) r.prompt.back() = static_cast<int32_t>(random.below(4000));
    r.max_new_tokens = static_cast<int64_t>(random.below(40));
    r.min_new_tokens = random.below(4) == 0 ? 5 : 0;
    r.seed = random.next();
    r.priority = static_cast<int>(random.below(3));
    if (random.below(4) == 0) r.stop.strings = {"the", ". "};
    if (random.below(4) == 0) r.banned_strings = {"he", "and", "was"};
    if (random.below(4) == 0) r.token_healing = true;
    if (random.below(4) == 0) r.cache_salt = "salt";
    SamplerParams params{.temperature = random.coin() ? 0.0 : 1.0};
    if (random.below(20) == 0) params.allowed_tokens = params.banned_tokens = {3};  // fails
    r.sampler = t.sampler(std::move(params));
    return r;
}

void soak(int steps, GeneratorOptions o, uint64_t seed) {
    Tales& t = Tales::get();
    Engine engine(*t.model, t.tokenizer, *t.device, o);
    Random random(seed);
    struct Running {
        JobHandle handle;
        Outcome out;
        int64_t most = 0;
    };
    std::vector<Running> jobs;
    uint64_t arrival = 0;
    for (int step = 0; step < steps || !jobs.empty(); ++step) {
        if (step < steps && jobs.size() < 12 && random.below(3) == 0) {
            JobRequest r = random_request(random);
            const int64_t most = r.max_new_tokens;
            auto job = make_job(std::move(r), t.tokenizer);
            job->arrival = arrival++;
            jobs.push_back({JobHandle(job->mailbox), {}, most});
            engine.add(std::move(job));
        }
        if (!jobs.empty() && random.below(30) == 0) jobs[random.below(jobs.size())].handle.cancel();
        engine.step();
        engine.scheduler().pages().audit();
        for (size_t i = jobs.size(); i-- > 0;) {
            if (random.coin() || !collect(jobs[i].handle, jobs[i].out)) continue;
            const JobResult& result = jobs[i].out.result;
            EXPECT_LE(result.new_tokens, jobs[i].most);
            if (result.end == JobEnd::max_new_tokens) {
                EXPECT_EQ(result.new_tokens, jobs[i].most);
            }
            jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(i));
        }
        ASSERT_LT(step, 50 * steps) << "jobs that do not end";
    }
    EXPECT_TRUE(engine.idle());
    EXPECT_EQ(engine.scheduler().pages().in_use(), 0);
    const GeneratorStats s = engine.stats();
    EXPECT_EQ(s.jobs_done + s.jobs_failed + s.jobs_cancelled, static_cast<int64_t>(arrival));
    EXPECT_EQ(s.cached_tokens > 0, o.reuse_prefixes);
}

// EXL3_SOAK_STEPS makes it long.
int steps_or(int steps) {
    const char* set = std::getenv("EXL3_SOAK_STEPS");
    return set ? std::atoi(set) : steps;
}

TEST(Soak, ATinyCache) {
    soak(steps_or(120), {.cache_tokens = 4 * 256, .max_jobs = 5, .chunk = 256, .step_tokens = 256},
         1);
}

TEST(Soak, ATinyCacheWithDrafts) {
    soak(steps_or(100),
         {.cache_tokens = 5 * 256,
          .max_jobs = 6,
          .chunk = 256,
          .step_tokens = 300,
          .max_drafts = 4,
          .ngram = {.least = 1}},
         2);
}

TEST(Soak, WithoutReuse) {
    soak(steps_or(60),
         {.cache_tokens = 4 * 256, .max_jobs = 5, .chunk = 256, .reuse_prefixes = false}, 3);
}

}  // namespace
}  // namespace exl3::test
