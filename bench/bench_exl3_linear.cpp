// EXL3 layers on one core of the CPU device: whole ops, transforms included, by thread CPU time.
// Names read codebook/tier/bits:K/rows:M/in:k/out:n. Counters are of the fastest iteration:
//   Gw/s    1e9 weights decoded per second    GMAC/s  the same times the rows
//   GB/s    packed bytes read per second
// Sizes: 4096 x 1024 stays in the second-level cache up to 2 bits and in the third above,
// 4096 x 4096 in the third; "memory" walks over 256 MiB of distinct layers.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

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

struct Case {
    Codebook codebook;
    cpu::Isa isa = cpu::Isa::scalar;
    int bits = 4;
    int64_t rows = 1, in = 4096, out = 4096;
    bool memory = false;  ///< weights come from memory: distinct layers, 256 MiB of them

    std::string name() const {
        return fmt::format("{}/{}/bits:{}/rows:{}/in:{}/out:{}{}", exl3::name_of(codebook.kind),
                           cpu::name_of(isa), bits, rows, in, out, memory ? "/memory" : "");
    }
};

/// Random words: any bits are a valid layer, and speed does not depend on them.
struct Layers {
    std::unique_ptr<Device> device;
    std::unique_ptr<Stream> stream;
    std::vector<Tensor> packed;
    Tensor x, y, suh, svh;

    explicit Layers(const Case& c)
        : device(cpu::open({.threads = 1, .isa = c.isa})), stream(device->make_stream()) {
        Random random(1);
        const Shape shape = {c.in / kTile, c.out / kTile, tile_words(c.bits)};
        const int64_t bytes = shape.numel() * 2;
        for (int64_t total = 0; packed.empty() || (c.memory && total < int64_t{256} << 20);
             total += bytes) {
            packed.push_back(device->make_tensor(DType::i16, shape));
            for (int64_t i = 0; i < bytes / 8; ++i)
                packed.back().view.as<uint64_t>()[i] = random.next();
        }
        x = device->make_tensor(DType::f32, {c.rows, c.in});
        y = device->make_tensor(DType::f32, {c.rows, c.out});
        for (int64_t i = 0; i < x.view.shape.numel(); ++i)
            x.view.as<float>()[i] = static_cast<float>(random.normal());
        suh = scales(c.in);
        svh = scales(c.out);
    }
    Tensor scales(int64_t n) const {
        Tensor t = device->make_tensor(DType::f16, {n});
        for (int64_t i = 0; i < n; ++i) t.view.as<f16>()[i] = to_f16(i % 3 ? 1.0f : -1.0f);
        return t;
    }
};

void linear(benchmark::State& state, const Case& c) {
    const Layers layers(c);
    size_t turn = 0;
    const auto run = [&] {
        ops::exl3_linear(*layers.stream,
                         {.x = layers.x.view,
                          .packed = layers.packed[turn++ % layers.packed.size()].view,
                          .suh = layers.suh.view,
                          .svh = layers.svh.view,
                          .y = layers.y.view,
                          .codebook = c.codebook,
                          .bits = c.bits});
    };
    run();
    double best = 1e9;
    for (auto _ : state) {
        const double begin = cpu_seconds();
        run();
        const double seconds = cpu_seconds() - begin;
        state.SetIterationTime(seconds);
        best = std::min(best, seconds);
    }
    const double weights = static_cast<double>(c.in * c.out);
    state.counters["Gw/s"] = weights / best / 1e9;
    state.counters["GMAC/s"] = weights * static_cast<double>(c.rows) / best / 1e9;
    state.counters["GB/s"] = weights * c.bits / 8 / best / 1e9;
}

void decode(benchmark::State& state, const Case& c) {
    const Layers layers(c);
    const Tensor y = layers.device->make_tensor(DType::f16, {c.in, c.out});
    double best = 1e9;
    for (auto _ : state) {
        const double begin = cpu_seconds();
        ops::exl3_decode(
            *layers.stream,
            {.packed = layers.packed[0].view, .y = y.view, .codebook = c.codebook, .bits = c.bits});
        const double seconds = cpu_seconds() - begin;
        state.SetIterationTime(seconds);
        best = std::min(best, seconds);
    }
    state.counters["Gw/s"] = static_cast<double>(c.in * c.out) / best / 1e9;
}

void add(const Case& c) {
    benchmark::RegisterBenchmark(("linear/" + c.name()).c_str(), linear, c)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->MinTime(c.isa == cpu::Isa::scalar ? 0.05 : 0.1);
}

void add_cases() {
    for (const cpu::Isa isa : cpu::available_isas())
        for (const Codebook codebook : {kMul1, kMcg, kThreeInst}) {
            for (int bits = 1; bits <= 8; ++bits) {
                add({.codebook = codebook, .isa = isa, .bits = bits, .out = 1024});
                if (isa == cpu::Isa::scalar) continue;
                add({.codebook = codebook, .isa = isa, .bits = bits});
                add({.codebook = codebook, .isa = isa, .bits = bits, .memory = true});
            }
            if (isa == cpu::Isa::scalar) continue;
            for (const int64_t rows : {2, 4, 8, 64, 512})
                add({.codebook = codebook, .isa = isa, .rows = rows});
            add({.codebook = codebook, .isa = isa, .in = 14336});
            const Case c{.codebook = codebook, .isa = isa, .in = 1024, .out = 1024};
            benchmark::RegisterBenchmark(("decode/" + c.name()).c_str(), decode, c)
                ->UseManualTime()
                ->Unit(benchmark::kMicrosecond)
                ->MinTime(0.1);
        }
}

}  // namespace
}  // namespace exl3

int main(int argc, char** argv) {
    exl3::add_cases();
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
