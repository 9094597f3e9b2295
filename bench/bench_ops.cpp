// Dense ops of the CPU device on one thread: GMAC/s and GB/s by CPU time, with the share of what
// this core can do, measured in the same run. `bench_ops --benchmark_filter=linear`.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/random.h"
#include "cpu/cpu.h"
#include "ops/ops.h"

namespace exl3 {
namespace {

/// The tier measured: the best of this machine unless EXL3_CPU_ISA lowers it.
cpu::Isa bench_isa() {
    const char* name = std::getenv("EXL3_CPU_ISA");
    const auto wanted = name ? cpu::isa_named(name) : std::nullopt;
    return std::min(wanted.value_or(cpu::best_isa()), cpu::best_isa());
}

double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <typename Fn>
double best_seconds(int times, const Fn& fn) {
    double best = 1e9;
    for (int i = 0; i < times; ++i) {
        const double t = cpu_seconds();
        fn();
        best = std::min(best, cpu_seconds() - t);
    }
    return best;
}

#define FMA12(reg, a, b)                                              \
    "vfmadd231ps " a "," b "," reg "0\n vfmadd231ps " a "," b "," reg \
    "1\n"                                                             \
    "vfmadd231ps " a "," b "," reg "2\n vfmadd231ps " a "," b "," reg \
    "3\n"                                                             \
    "vfmadd231ps " a "," b "," reg "4\n vfmadd231ps " a "," b "," reg \
    "5\n"                                                             \
    "vfmadd231ps " a "," b "," reg "6\n vfmadd231ps " a "," b "," reg \
    "7\n"                                                             \
    "vfmadd231ps " a "," b "," reg "8\n vfmadd231ps " a "," b "," reg \
    "9\n"                                                             \
    "vfmadd231ps " a "," b "," reg "10\n vfmadd231ps " a "," b "," reg "11\n"
#define FMA_CLOBBERS \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11"

/// Multiply-adds per second of one core with all operands in registers, in 1e9.
double peak_gmacs() {
    static const double peak = [] {
        constexpr int kLoops = 200000;
        const bool wide = bench_isa() >= cpu::Isa::avx512;
        const double t = best_seconds(30, [&] {
            for (int i = 0; i < kLoops; ++i) {
                if (wide)
                    asm volatile(FMA12("%%zmm", "%%zmm14", "%%zmm15")::: FMA_CLOBBERS);
                else
                    asm volatile(FMA12("%%ymm", "%%ymm14", "%%ymm15")::: FMA_CLOBBERS);
            }
        });
        return 12.0 * kLoops * (wide ? 16 : 8) / t / 1e9;
    }();
    return peak;
}

/// Bytes per second one core reads from memory, in 1e9.
double peak_read() {
    static const double peak = [] {
        constexpr size_t kBytes = size_t{256} << 20;
        const Buffer b = allocate_host(kBytes);
        std::memset(b.data(), 1, kBytes);
        const auto* p = static_cast<const char*>(b.data());
        const double t = best_seconds(8, [&] {
            __m128i x[4] = {};
            for (size_t i = 0; i < kBytes; i += 64)
                for (size_t j = 0; j < 4; ++j)
                    x[j] = _mm_xor_si128(
                        x[j], _mm_load_si128(reinterpret_cast<const __m128i*>(p + i + 16 * j)));
            benchmark::DoNotOptimize(x);
        });
        return static_cast<double>(kBytes) / t / 1e9;
    }();
    return peak;
}

struct Bench {
    std::unique_ptr<Device> device = cpu::open({.threads = 1, .isa = bench_isa()});
    std::unique_ptr<Stream> stream = device->make_stream();
    std::vector<Tensor> tensors;
    Random random{1};

    View make(Shape shape, DType dtype = DType::f32) {
        tensors.push_back(device->make_tensor(dtype, shape));
        const View v = tensors.back().view;
        for (int64_t i = 0; i < shape.numel(); ++i) {
            const auto x = static_cast<float>(random.uniform() - 0.5);
            if (dtype == DType::f32)
                v.as<float>()[i] = x;
            else if (dtype == DType::f16)
                v.as<f16>()[i] = to_f16(x);
            else
                v.as<bf16>()[i] = to_bf16(x);
        }
        return v;
    }
    View ints(const std::vector<int32_t>& x, Shape shape) {
        tensors.push_back(device->make_tensor(DType::i32, shape));
        std::copy(x.begin(), x.end(), tensors.back().view.as<int32_t>());
        return tensors.back().view;
    }
};

/// Runs fn once per iteration under manual CPU time; counters are of the fastest iteration.
template <typename Fn>
void measure(benchmark::State& state, double macs, double bytes, const Fn& fn) {
    fn();
    double best = 1e9;
    for (auto _ : state) {
        const double t = cpu_seconds();
        fn();
        const double d = cpu_seconds() - t;
        state.SetIterationTime(d);
        best = std::min(best, d);
    }
    if (macs > 0) {
        state.counters["GMAC/s"] = macs / best / 1e9;
        state.counters["of_fma_peak"] = macs / best / 1e9 / peak_gmacs();
    }
    if (bytes > 0) {
        state.counters["GB/s"] = bytes / best / 1e9;
        state.counters["of_read"] = bytes / best / 1e9 / peak_read();
    }
}

/// rows, in, out; f16 weights out of a set larger than the caches, as in decode.
void linear(benchmark::State& state, DType dtype) {
    const int64_t rows = state.range(0), in = state.range(1), out = state.range(2);
    Bench b;
    const View x = b.make({rows, in}), y = b.make({rows, out});
    const auto bytes = static_cast<double>(in * out) * static_cast<double>(size_of(dtype));
    std::vector<View> weights;
    const int copies = rows <= 8 ? 1 + static_cast<int>(128e6 / bytes) : 1;
    for (int i = 0; i < copies; ++i) weights.push_back(b.make({out, in}, dtype));
    size_t turn = 0;
    measure(state, static_cast<double>(rows * in * out), bytes, [&] {
        ops::linear(*b.stream, {.x = x, .weight = weights[turn++ % weights.size()], .y = y});
    });
}

void linear_sizes(benchmark::internal::Benchmark* b) {
    for (const int64_t rows : {1, 2, 4, 8, 12, 64, 256}) b->Args({rows, 4096, 4096});
    for (const int64_t rows : {1, 12, 96}) b->Args({rows, 768, 2048});
    for (const int64_t rows : {1, 96}) b->Args({rows, 14336, 4096});
    b->UseManualTime()->Unit(benchmark::kMicrosecond)->MinTime(0.2);
}
BENCHMARK_CAPTURE(linear, f16, DType::f16)->Apply(linear_sizes);
BENCHMARK_CAPTURE(linear, bf16, DType::bf16)->Apply(linear_sizes);
BENCHMARK_CAPTURE(linear, f32, DType::f32)->Apply(linear_sizes);

/// m, n, k, with the transposes of a (bit 0) and b (bit 1), and bit 2 for a lower result.
void gemm(benchmark::State& state) {
    const int64_t m = state.range(0), n = state.range(1), k = state.range(2), bits = state.range(3);
    Bench b;
    const bool ta = bits & 1, tb = bits & 2, lower = bits & 4;
    const View x = b.make(ta ? Shape{k, m} : Shape{m, k});
    const View w = b.make(tb ? Shape{n, k} : Shape{k, n});
    const View y = b.make({m, n});
    const double macs = static_cast<double>(m * n * k) * (lower ? 0.5 : 1);
    measure(state, macs, 0, [&] {
        ops::gemm(*b.stream, {.a = x,
                              .b = w,
                              .c = y,
                              .transpose_a = ta,
                              .transpose_b = tb,
                              .beta = 1,
                              .lower = lower});
    });
}
BENCHMARK(gemm)
    ->ArgsProduct({{512}, {512}, {512}, {0, 1, 2, 3}})
    ->Args({768, 768, 768, 0})
    ->Args({2048, 2048, 2048, 0})
    ->Args({4096, 4096, 1024, 1})
    ->Args({4096, 4096, 1024, 5})
    ->Args({16, 4096, 1024, 0})
    ->Args({16, 4096, 1024, 1})
    ->Args({128, 4096, 1024, 1})
    ->Args({4096, 4096, 16, 0})
    ->Args({4096, 4096, 128, 0})
    ->Args({4096, 16, 1024, 0})
    ->Args({1024, 128, 1024, 0})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->MinTime(0.2);

/// Sequences, rows of each, tokens before them, heads, kv heads, head dimension. MACs are those of
/// the visible keys; bytes are the cache read once.
void attention(benchmark::State& state) {
    const auto sequences = state.range(0), rows = state.range(1), past = state.range(2);
    const auto heads = state.range(3), kv_heads = state.range(4), dim = state.range(5);
    Bench b;
    const int64_t pages = (rows + past + kPageTokens - 1) / kPageTokens;
    std::vector<int32_t> start, kv_len, table;
    for (int64_t i = 0; i <= sequences; ++i) start.push_back(static_cast<int32_t>(i * rows));
    for (int64_t i = 0; i < sequences; ++i) kv_len.push_back(static_cast<int32_t>(rows + past));
    for (int64_t i = 0; i < sequences * pages; ++i) table.push_back(static_cast<int32_t>(i));
    const Shape cache{sequences * pages, kPageTokens, kv_heads, dim};
    const AttentionArgs args{
        .q = b.make({sequences * rows, heads, dim}),
        .cache = {.k = b.make(cache, DType::f16), .v = b.make(cache, DType::f16)},
        .seq = {.q_start = b.ints(start, {sequences + 1}),
                .kv_len = b.ints(kv_len, {sequences}),
                .pages = b.ints(table, {sequences, pages})},
        .y = b.make({sequences * rows, heads, dim}),
        .scale = 0.1f};
    const auto visible = static_cast<double>(rows * past + rows * (rows + 1) / 2);
    measure(state, 2 * visible * static_cast<double>(sequences * heads * dim),
            static_cast<double>(sequences * (rows + past) * kv_heads * dim * 4),
            [&] { ops::attention(*b.stream, args); });
}
BENCHMARK(attention)
    ->Args({1, 1, 32000, 32, 8, 128})
    ->Args({1, 1, 32000, 8, 8, 128})
    ->Args({1, 1, 32000, 32, 4, 128})
    ->Args({1, 1, 8000, 16, 8, 256})
    ->Args({64, 1, 1000, 32, 8, 128})
    ->Args({1, 1, 100, 32, 8, 128})
    ->Args({1, 2, 16000, 32, 8, 128})
    ->Args({1, 4, 16000, 32, 8, 128})
    ->Args({1, 8, 16000, 32, 8, 128})
    ->Args({1, 16, 16000, 32, 8, 128})
    ->Args({1, 8, 0, 32, 8, 128})
    ->Args({1, 512, 0, 32, 8, 128})
    ->Args({1, 512, 8000, 32, 8, 128})
    ->Args({1, 2048, 0, 32, 8, 128})
    ->Args({1, 512, 512, 16, 16, 64})
    ->Args({1, 512, 512, 8, 4, 256})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->MinTime(0.2);

void small(benchmark::internal::Benchmark* b) {
    b->UseManualTime()->Unit(benchmark::kMicrosecond)->MinTime(0.1);
}

/// rows, dim. Bytes are all that is read and written once.
void gated_act(benchmark::State& state, Act act) {
    Bench b;
    const Shape shape{state.range(0), state.range(1)};
    const GatedActArgs args{
        .gate = b.make(shape), .up = b.make(shape), .y = b.make(shape), .act = act};
    measure(state, 0, 12.0 * static_cast<double>(shape.numel()),
            [&] { ops::gated_act(*b.stream, args); });
}
BENCHMARK_CAPTURE(gated_act, silu, Act::silu)->Args({1, 14336})->Args({64, 14336})->Apply(small);
BENCHMARK_CAPTURE(gated_act, gelu, Act::gelu)->Args({64, 14336})->Apply(small);
BENCHMARK_CAPTURE(gated_act, gelu_tanh, Act::gelu_tanh)->Args({64, 14336})->Apply(small);

/// rows, dim, columns.
void hadamard(benchmark::State& state) {
    Bench b;
    const View x = b.make({state.range(0), state.range(1)});
    measure(state, 0, 8.0 * static_cast<double>(x.shape.numel()),
            [&] { ops::hadamard(*b.stream, {.x = x, .columns = state.range(2) != 0}); });
}
BENCHMARK(hadamard)->Args({1, 4096, 0})->Args({512, 4096, 0})->Args({512, 4096, 1})->Apply(small);

/// tokens, heads, head dimension, all of it rotated.
void rope(benchmark::State& state) {
    Bench b;
    const int64_t tokens = state.range(0);
    std::vector<int32_t> positions;
    for (int64_t i = 0; i < tokens; ++i) positions.push_back(static_cast<int32_t>(1000 + i));
    const RopeArgs args{.x = b.make({tokens, state.range(1), state.range(2)}),
                        .positions = b.ints(positions, {tokens}),
                        .inv_freq = b.make({state.range(2) / 2})};
    measure(state, 0, 8.0 * static_cast<double>(args.x.shape.numel()),
            [&] { ops::rope(*b.stream, args); });
}
BENCHMARK(rope)->Args({1, 32, 128})->Args({512, 32, 128})->Args({512, 8, 128})->Apply(small);

}  // namespace
}  // namespace exl3

BENCHMARK_MAIN();
