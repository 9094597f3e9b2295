// One layer of routed experts in the shapes of Qwen3-30B-A3B: gate and up 2048 x 768, down 768 x
// 2048, 8 of 128 experts, EXL3 at 4 bits (302 MB, so weights come from memory), one thread of the
// CPU device, by thread CPU time. Names read rows:M. Counters are of the fastest iteration:
//   GB/s    packed bytes of the chosen experts read per second
//   share   of them to what this thread reads from memory (best of a few sweeps over 256 MiB)
//   us/tok  microseconds per token
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "base/random.h"
#include "cpu/bandwidth.h"
#include "cpu/cpu.h"
#include "ops/ops.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

constexpr int64_t kHidden = 2048, kInner = 768;
constexpr int kExperts = 128, kTopK = 8, kBits = 4;

double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// One projection of every expert, of random bits: speed does not depend on them.
struct Matrices {
    int64_t in, out;
    std::vector<Tensor> parts;
    Tensor addresses;
    Matrices(Device& d, Random& random, int64_t k, int64_t n) : in(k), out(n) {
        addresses = d.make_tensor(DType::u64, {kExperts, 4});
        const auto add = [&](DType dtype, Shape shape) {
            parts.push_back(d.make_tensor(dtype, shape));
            return parts.back().view;
        };
        for (int e = 0; e < kExperts; ++e) {
            const View packed = add(DType::i16, {k / kTile, n / kTile, tile_words(kBits)});
            for (int64_t i = 0; i < packed.shape.numel() / 4; ++i)
                packed.as<uint64_t>()[i] = random.next();
            const View suh = add(DType::f16, {k}), svh = add(DType::f16, {n});
            std::fill_n(suh.as<f16>(), k, to_f16(1));
            std::fill_n(svh.as<f16>(), n, to_f16(0.02f));
            auto* at = addresses.view.row<uint64_t>(e);
            at[0] = reinterpret_cast<uint64_t>(packed.data);
            at[1] = reinterpret_cast<uint64_t>(suh.data);
            at[2] = reinterpret_cast<uint64_t>(svh.data);
            at[3] = 0;
        }
    }
    void run(Stream& s, const RowGroups& groups, ConstView x, View y) const {
        ops::grouped_exl3_linear(s, {.x = x,
                                     .groups = groups,
                                     .matrices = addresses.view,
                                     .y = y,
                                     .k = in,
                                     .n = out,
                                     .codebook = kMul1,
                                     .bits = kBits});
    }
};

struct Layer {
    std::unique_ptr<Device> device = cpu::open({.threads = 1});
    std::unique_ptr<Stream> stream = device->make_stream();
    Random random{1};
    Matrices gate{*device, random, kHidden, kInner}, up{*device, random, kHidden, kInner},
        down{*device, random, kInner, kHidden};
};

double read_bandwidth() {
    static const double best = [] {
        ThreadPool pool(1);
        return cpu::measure_bandwidth(pool).read;
    }();
    return best;
}

void measure(benchmark::State& state, Layer& l, int64_t rows) {
    Stream& s = *l.stream;
    const int64_t entries = rows * kTopK;
    const auto tensor = [&](DType dtype, Shape shape) {
        return l.device->make_tensor(dtype, shape);
    };
    const Tensor x = tensor(DType::f32, {rows, kHidden}),
                 logits = tensor(DType::f32, {rows, kExperts}),
                 chosen = tensor(DType::i32, {rows, kTopK}),
                 weight = tensor(DType::f32, {rows, kTopK}),
                 start = tensor(DType::i32, {kExperts + 1}), source = tensor(DType::i32, {entries}),
                 slot = tensor(DType::i32, {rows, kTopK}),
                 g = tensor(DType::f32, {entries, kInner}),
                 u = tensor(DType::f32, {entries, kInner}),
                 h = tensor(DType::f32, {entries, kHidden}),
                 y = tensor(DType::f32, {rows, kHidden});
    for (int64_t i = 0; i < rows * kHidden; ++i)
        x.view.as<float>()[i] = static_cast<float>(l.random.normal());
    double best = 1e9, bytes = 0;
    for (auto _ : state) {
        // Other experts each time, so that none of them waits in a cache.
        for (int64_t i = 0; i < rows * kExperts; ++i)
            logits.view.as<float>()[i] = static_cast<float>(l.random.normal());
        const double begin = cpu_seconds();
        ops::route(s, {.logits = logits.view, .chosen = chosen.view, .weight = weight.view});
        ops::group_rows(
            s,
            {.chosen = chosen.view, .start = start.view, .source = source.view, .slot = slot.view});
        const RowGroups groups{start.view, source.view};
        l.gate.run(s, groups, x.view, g.view);
        l.up.run(s, groups, x.view, u.view);
        ops::gated_act(s, {.gate = g.view, .up = u.view, .y = g.view});
        l.down.run(s, {.start = start.view}, g.view, h.view);
        ops::combine_rows(s, {.x = h.view, .slot = slot.view, .weight = weight.view, .y = y.view});
        const double seconds = cpu_seconds() - begin;
        int used = 0;
        for (int e = 0; e < kExperts; ++e)
            used += start.view.as<int32_t>()[e + 1] > start.view.as<int32_t>()[e];
        if (seconds / used < best) {
            best = seconds / used;
            bytes = 3.0 * kHidden * kInner * kBits / 8 / best;
        }
        state.SetIterationTime(seconds);
        state.counters["us/tok"] = 1e6 * seconds / static_cast<double>(rows);
    }
    state.counters["GB/s"] = bytes * 1e-9;
    state.counters["share"] = bytes / read_bandwidth();
}

}  // namespace
}  // namespace exl3

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    static exl3::Layer layer;
    for (const int64_t rows : {1, 4, 16, 64, 512})
        benchmark::RegisterBenchmark(fmt::format("moe/a3b/rows:{}", rows).c_str(),
                                     [=](benchmark::State& s) { exl3::measure(s, layer, rows); })
            ->UseManualTime();
    benchmark::RunSpecifiedBenchmarks();
}
