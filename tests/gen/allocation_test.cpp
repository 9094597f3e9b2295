// Counts what the decode loop asks of the heap.
#include <gtest/gtest.h>

#include "gen/engine.h"
#include "support/count_allocations.h"
#include "support/tales.h"

namespace exl3::test {
namespace {

int allocations_of_steps(GeneratorOptions o, int steps) {
    Tales& t = Tales::get();
    Engine engine(*t.model, t.tokenizer, *t.device, o);
    std::vector<JobHandle> jobs;
    for (size_t i = 0; i < 6; ++i) {
        auto job = make_job({.prompt = t.tokens(100 * i, 200),
                             .max_new_tokens = 400,
                             .stop = {.strings = {"no such text"}},
                             .sampler = t.sampler({.temperature = 0.8,
                                                   .top_k = 40,
                                                   .top_p = 0.95,
                                                   .min_p = 0.05,
                                                   .xtc_probability = 0.3,
                                                   .repetition_penalty = 1.1}),
                             .seed = i},
                            t.tokenizer);
        job->arrival = i;
        jobs.emplace_back(job->mailbox);
        engine.add(std::move(job));
    }
    JobEvent event;
    const auto read_news = [&] {
        for (JobHandle& j : jobs) static_cast<void>(j.poll(event));
    };
    // Warm: scratch has grown, and the first page of each job is full.
    for (int i = 0; i < 120; ++i, read_news()) engine.step();
    allocations = 0;
    counting = true;
    for (int i = 0; i < steps; ++i) {
        engine.step();
        read_news();
    }
    counting = false;
    EXPECT_EQ(engine.stats().running, 6);
    return allocations;
}

TEST(DecodeLoop, DoesNotAllocate) {
    EXPECT_EQ(allocations_of_steps({}, 100), 0);
}

TEST(DecodeLoop, DoesNotAllocateWhileItSpeculates) {
    EXPECT_EQ(allocations_of_steps({.max_drafts = 4, .ngram = {.least = 2}}, 40), 0);
}

}  // namespace
}  // namespace exl3::test
