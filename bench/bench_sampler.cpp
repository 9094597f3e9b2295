// Time per token of sampler chains on one core. Logits are drawn from a normal distribution of
// standard deviation 3 with a few strong favourites, about as spread as a language model's.
#include <benchmark/benchmark.h>

#include "base/random.h"
#include "sample/sampler.h"

namespace exl3 {
namespace {

std::vector<float> make_logits(int vocab) {
    Random random(1);
    std::vector<float> logits(static_cast<size_t>(vocab));
    for (float& l : logits) l = static_cast<float>(3 * random.normal());
    for (int i = 0; i < 20; ++i) logits[random.below(logits.size())] += 10;
    return logits;
}

void run(benchmark::State& bench, const SamplerParams& params) {
    const int vocab = 151936;
    const std::vector<float> logits = make_logits(vocab);
    const Sampler sampler(params);
    std::vector<int32_t> prompt(2000);
    Random random(2);
    for (int32_t& token : prompt) token = static_cast<int32_t>(random.below(5000));
    SamplerState state = sampler.start(prompt, 3);
    for (auto _ : bench) {
        benchmark::DoNotOptimize(sampler.sample(logits, state));
        ++state.position;
    }
}

#define EXL3_CHAIN(name, ...) BENCHMARK_CAPTURE(run, name, SamplerParams{__VA_ARGS__})
EXL3_CHAIN(greedy, .temperature = 0);
EXL3_CHAIN(temperature, .temperature = 0.8);
EXL3_CHAIN(top_k, .temperature = 0.8, .top_k = 40);
EXL3_CHAIN(top_p, .temperature = 0.8, .top_p = 0.9);
EXL3_CHAIN(min_p, .temperature = 0.8, .min_p = 0.05);
EXL3_CHAIN(recommended, .temperature = 0.8, .temperature_last = true, .min_p = 0.08);
EXL3_CHAIN(top_k_p_min_p, .temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05);
EXL3_CHAIN(chat, .temperature = 0.8, .top_p = 0.95, .min_p = 0.05, .repetition_penalty = 1.1,
           .dry_multiplier = 0.8);
EXL3_CHAIN(flat_top_p, .temperature = 5, .top_p = 0.9);
EXL3_CHAIN(typical, .typical = 0.9);
EXL3_CHAIN(tail_free, .tfs = 0.95);
EXL3_CHAIN(top_n_sigma, .top_n_sigma = 1);
EXL3_CHAIN(dynamic_temperature, .min_temp = 0.5, .max_temp = 1.5, .min_p = 0.05);
EXL3_CHAIN(mirostat_1, .mirostat_mode = 1, .mirostat_tau = 5);
EXL3_CHAIN(mirostat_2, .mirostat_mode = 2, .mirostat_tau = 5);
EXL3_CHAIN(top_p_with_logprobs, .temperature = 0.8, .top_p = 0.9, .logprobs = 5);

}  // namespace
}  // namespace exl3

BENCHMARK_MAIN();
