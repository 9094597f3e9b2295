// The trellis encoder on one core, by thread CPU time. Names read codebook/tier/bits:K; the counter
// Mw/s is 1e6 weights encoded per second in the fastest iteration.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/random.h"
#include "cpu/cpu.h"
#include "ops/ops.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void encode(benchmark::State& state, Codebook codebook, cpu::Isa isa, int bits) {
    const auto device = cpu::open({.threads = 1, .isa = isa});
    const auto stream = device->make_stream();
    const int64_t tiles = isa == cpu::Isa::scalar ? 1 : 32;
    const Tensor target = device->make_tensor(DType::f32, {tiles, kTileSize});
    const Tensor states = device->make_tensor(DType::u16, {tiles, kTileSize});
    Random random(1);
    for (int64_t i = 0; i < tiles * kTileSize; ++i)
        target.view.as<float>()[i] = static_cast<float>(0.95 * random.normal());
    double best = 1e9;
    for (auto _ : state) {
        const double start = cpu_seconds();
        ops::encode_tiles(
            *stream,
            {.target = target.view, .states = states.view, .codebook = codebook, .bits = bits});
        best = std::min(best, cpu_seconds() - start);
    }
    state.counters["Mw/s"] = 1e-6 * static_cast<double>(tiles * kTileSize) / best;
}

}  // namespace
}  // namespace exl3

int main(int argc, char** argv) {
    using namespace exl3;
    for (const cpu::Isa isa : {cpu::Isa::avx512, cpu::Isa::avx2, cpu::Isa::scalar})
        for (int bits = 1; isa <= cpu::best_isa() && bits <= 8; ++bits)
            benchmark::RegisterBenchmark(
                fmt::format("mul1/{}/bits:{}", cpu::name_of(isa), bits).c_str(),
                [=](benchmark::State& s) { encode(s, kMul1, isa, bits); })
                ->Iterations(isa == cpu::Isa::scalar ? 1 : 10)
                ->Unit(benchmark::kMillisecond);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
