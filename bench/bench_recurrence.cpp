// The linear recurrences of the CPU device on one thread, by CPU time: prompts in chunks against
// token after token, and one step of decoding against what this core moves to and from memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <vector>

#include "base/random.h"
#include "cpu/cpu.h"
#include "cpu/recurrence.h"

namespace exl3 {
namespace {

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

struct Layer {
    const char* name;
    int key_heads, heads, key_dim, value_dim;
    bool delta;
    int layers;  // of the model: decoding walks through as many states
};
constexpr Layer kLayers[] = {{"Qwen3-Next delta net", 16, 32, 128, 128, true, 36},
                             {"Nemotron-3-Nano Mamba2", 8, 64, 128, 64, false, 23}};

/// Inputs of a layer for a number of tokens of one sequence, and the states of all layers.
class Case {
public:
    Case(Device& device, Stream& s, const Layer& layer, int64_t tokens, int states)
        : device_(device), stream_(s), layer_(layer) {
        const int64_t keys = int64_t{layer.key_heads} * layer.key_dim,
                      values = int64_t{layer.heads} * layer.value_dim;
        args_.q = random({tokens, keys}, 1, 0);
        args_.k = random({tokens, keys}, 1, 0);
        args_.v = random({tokens, values}, 1, 0);
        args_.log_decay = random({tokens, layer.heads}, 0.05, -0.1);
        args_.write = random({tokens, layer.heads}, 0.1, 0.5);
        args_.y = random({tokens, values}, 1, 0);
        args_.memory = random({states, layer.heads, layer.key_dim, layer.value_dim}, 1, 0);
        args_.key_heads = layer.key_heads;
        args_.delta = layer.delta;
        args_.normalize_eps = layer.delta ? 1e-6f : 0;
        args_.scale = 1 / std::sqrt(static_cast<float>(layer.key_dim));
        start_ = ints({0, static_cast<int32_t>(tokens)});
        length_ = ints({static_cast<int32_t>(tokens + 1)});
        for (int i = 0; i < states; ++i) slots_.push_back(ints({i}));
    }
    void run(int64_t chunks_from, size_t state) {
        args_.seq = {start_, length_, slots_[state]};
        cpu::run_recurrence(stream_, args_, chunks_from);
    }

private:
    View random(Shape shape, double scale, double mean) {
        std::vector<float> v(static_cast<size_t>(shape.numel()));
        for (float& x : v) x = static_cast<float>(mean + scale * (2 * random_.uniform() - 1));
        return keep(v.data(), DType::f32, shape);
    }
    View ints(const std::vector<int32_t>& v) {
        return keep(v.data(), DType::i32, {static_cast<int64_t>(v.size())});
    }
    View keep(const void* data, DType dtype, Shape shape) {
        tensors_.push_back(device_.make_tensor(dtype, shape));
        stream_.copy(dense(data, dtype, shape), tensors_.back().view);
        return tensors_.back().view;
    }
    Device& device_;
    Stream& stream_;
    Layer layer_;
    Random random_{7};
    std::vector<Tensor> tensors_;
    RecurrenceArgs args_;
    View start_, length_;
    std::vector<View> slots_;
};

/// Bytes per second one core reads and writes back, in 1e9, over more than any cache holds.
double peak_update() {
    const size_t n = size_t{64} << 20;
    std::vector<float> v(n, 1.0f);
    const double t = best_seconds(8, [&] {
        for (float& x : v) x *= 1.0001f;
    });
    return 8.0 * static_cast<double>(n) / t / 1e9;
}

void prompts(Device& device, Stream& s, const Layer& layer) {
    for (const int64_t tokens : {64, 512}) {
        Case c(device, s, layer, tokens, 1);
        double chunks = 1e9, steps = 1e9;
        for (int i = 0; i < 7; ++i) {  // taking turns, so that both see the same machine
            chunks = std::min(chunks, best_seconds(1, [&] { c.run(1, 0); }));
            steps = std::min(
                steps, best_seconds(1, [&] { c.run(std::numeric_limits<int64_t>::max(), 0); }));
        }
        // Multiply-adds that the definition needs: what the state holds for k, its update, y.
        const double macs = static_cast<double>(tokens) * layer.heads * layer.key_dim *
                            layer.value_dim * (layer.delta ? 3 : 2);
        fmt::print(
            "{:24} {:4} tokens: chunks {:7.2f} us/token, {:5.1f} GMAC/s; steps {:7.2f} "
            "us/token; ratio {:.2f}\n",
            layer.name, tokens, 1e6 * chunks / tokens, macs / chunks / 1e9, 1e6 * steps / tokens,
            steps / chunks);
    }
}

void decoding(Device& device, Stream& s, const Layer& layer, double peak) {
    Case c(device, s, layer, 1, layer.layers);
    const double t = best_seconds(9, [&] {
        for (size_t i = 0; i < static_cast<size_t>(layer.layers); ++i) c.run(8, i);
    });
    const double bytes =
        8.0 * layer.layers * layer.heads * layer.key_dim * layer.value_dim;  // read and written
    fmt::print(
        "{:24} decode, all {} layers: {:7.1f} us, {:.1f} GB/s of state, {:.0f} % of {:.1f}\n",
        layer.name, layer.layers, 1e6 * t, bytes / t / 1e9, 100 * bytes / t / 1e9 / peak, peak);
}

}  // namespace
}  // namespace exl3

int main() {
    using namespace exl3;
    const double peak = peak_update();
    for (const cpu::Isa isa : cpu::available_isas()) {
        if (isa != cpu::Isa::avx2 && isa != cpu::best_isa()) continue;
        const auto device = cpu::open({.threads = 1, .isa = isa});
        const auto stream = device->make_stream();
        fmt::print("{}\n", cpu::name_of(isa));
        for (const Layer& layer : kLayers) prompts(*device, *stream, layer);
        for (const Layer& layer : kLayers) decoding(*device, *stream, layer, peak);
    }
}
