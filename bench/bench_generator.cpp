// What a step costs besides the model and the sampler, and how soon a second turn begins.
#include <benchmark/benchmark.h>

#include "arch/arch.h"
#include "base/random.h"
#include "cpu/cpu.h"
#include "gen/engine.h"
#include "gen/model_defaults.h"

namespace exl3 {
namespace {

struct Bundled {
    std::unique_ptr<Device> device = cpu::open({.threads = 1});
    Tokenizer tokenizer = Tokenizer::load(EXL3_SOURCE_DIR "/models/tales-9m");
    std::shared_ptr<const Sampler> sampler = std::make_shared<const Sampler>(
        SamplerParams{.temperature = 0.8}, sampler_vocab(tokenizer));
    std::unique_ptr<Model> model;
    Bundled() {
        const Checkpoint c = Checkpoint::open(EXL3_SOURCE_DIR "/models/tales-9m");
        const auto stream = device->make_stream();
        model = std::make_unique<Model>(*stream, c, describe(c));
    }
    static Bundled& get() {
        static Bundled b;
        return b;
    }
};

std::vector<int32_t> tokens(uint64_t seed, size_t n) {
    Random random(seed);
    std::vector<int32_t> ids(n);
    for (int32_t& id : ids) id = static_cast<int32_t>(1 + random.below(4000));
    return ids;
}

JobHandle add(Engine& engine, std::vector<int32_t> prompt, int64_t n, uint64_t arrival) {
    Bundled& b = Bundled::get();
    auto job = make_job({.prompt = std::move(prompt),
                         .max_new_tokens = n,
                         .stop = {.strings = {"no such text"}},
                         .sampler = b.sampler,
                         .seed = arrival},
                        b.tokenizer);
    job->arrival = arrival;
    JobHandle handle(job->mailbox);
    engine.add(std::move(job));
    return handle;
}

// Reported: microseconds per step beside the model and the sampler.
void scheduler(benchmark::State& state) {
    Bundled& b = Bundled::get();
    const auto jobs = static_cast<int>(state.range(0));
    const auto steps = 2000;
    Engine engine(*b.model, b.tokenizer, *b.device,
                  {.cache_tokens = int64_t{jobs} * 768,
                   .max_jobs = jobs,
                   .max_drafts = static_cast<int>(state.range(1)),
                   .ngram = {.least = 3}});
    std::vector<JobHandle> handles;
    for (int i = 0; i < jobs; ++i)
        handles.push_back(add(engine, tokens(static_cast<uint64_t>(i), 16), 700, i));
    for (int i = 0; i < 40; ++i) engine.step();
    JobEvent event;
    double least = 1;
    for (auto _ : state) {
        for (int i = 0; i < steps / 10; ++i) {
            const GeneratorStats before = engine.stats();
            engine.step();
            const GeneratorStats after = engine.stats();
            const double spent = after.scheduler_seconds - before.scheduler_seconds +
                                 after.draft_seconds - before.draft_seconds;
            least = std::min(least, spent);
            for (JobHandle& h : handles) h.poll(event);
        }
    }
    state.counters["us_per_step"] = least * 1e6;
}
BENCHMARK(scheduler)->Args({1, 0})->Args({64, 0})->Args({64, 4})->Iterations(1);

// Reported: time to the first token of a chat of 8192 tokens, cold and with another turn of 40.
void second_turn(benchmark::State& state) {
    Bundled& b = Bundled::get();
    for (auto _ : state) {
        Engine engine(*b.model, b.tokenizer, *b.device, {.cache_tokens = 9216});
        std::vector<int32_t> prompt = tokens(1, 8192);
        const auto first_token = [&](uint64_t arrival) {
            JobHandle job = add(engine, prompt, 1, arrival);
            JobEvent event;
            while (!event.result) {
                engine.step();
                job.poll(event);
            }
            return event.result->prompt_seconds;
        };
        const double cold = first_token(0);
        for (const int32_t id : tokens(2, 40)) prompt.push_back(id);
        const double warm = first_token(1);
        state.counters["cold_ms"] = cold * 1e3;
        state.counters["warm_ms"] = warm * 1e3;
        state.counters["share"] = warm / cold;
    }
}
BENCHMARK(second_turn)->Iterations(1);

}  // namespace
}  // namespace exl3

BENCHMARK_MAIN();
