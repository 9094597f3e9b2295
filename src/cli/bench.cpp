// Measures how fast a model runs here, and how near that is to what the memory allows.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "arch/arch.h"
#include "cli/bench.h"
#include "cli/machine.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/units.h"
#include "cpu/bandwidth.h"
#include "cpu/cpu.h"
#include "exl3_version.h"
#include "gen/speed.h"
#include "quant/inspect.h"
#include "quant/synthetic.h"

namespace exl3::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
    std::string model, synthetic, codebook = "mul1";
    int bits = 4, head_bits = 6;
    std::vector<int64_t> contexts = {0}, prefills = {512};
    std::vector<int> batches = {1};
    bool quantize = false, json = false;
    KvBits kv_bits;
    DeviceFlags device;
};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Decode {
    int64_t context = 0;
    int batch = 0;
    double seconds = 0, bytes_per_second = 0;
    double tps() const { return batch / seconds; }
};
struct Prefill {
    int64_t tokens = 0;
    double seconds = 0;
    double tps() const { return static_cast<double>(tokens) / seconds; }
};

/// Of the memory that the weights are in.
struct Bandwidth {
    double read = 0, copy = 0;  ///< bytes per second
    bool on_device = false;     ///< a GPU's memory
};

struct Results {
    std::string name, device;
    int threads = 0;
    KvBits kv_bits;
    Bandwidth bandwidth;
    double load_seconds = 0;
    WeightTraffic traffic;
    uint64_t weight_bytes = 0, memory_bytes = 0, cache_bytes = 0;
    std::vector<Decode> decode;
    std::vector<Prefill> prefill;
    double share(const Decode& d) const { return d.bytes_per_second / bandwidth.copy; }
};

Bandwidth bandwidth_of(Device& device, ThreadPool& pool) {
    if (const auto b = measure_device_bandwidth(device)) return {b->read, b->copy, true};
    const cpu::MemoryBandwidth b = cpu::measure_bandwidth(pool);
    return {b.read, b.copy, false};
}

// Bytes that a GPU has left; 0 for other devices.
uint64_t free_device_memory(const std::string& device) {
    for (const GpuDescription& g : list_gpus())
        if (g.device == device) return g.memory_free;
    return 0;
}

std::string gpu_name(const std::string& device) {
    for (const GpuDescription& g : list_gpus())
        if (g.device == device) return g.name;
    return "";
}

// The middle of several passes: at least three, more while they take under a second together.
template <typename Pass>
double typical_seconds(const Pass& pass) {
    pass();  // the first one grows the workspace and warms the caches
    std::vector<double> all;
    double total = 0;
    while (all.size() < 3 || (total < 1 && all.size() < 101)) {
        check_stop();
        all.push_back(pass());
        total += all.back();
        if (total > 20) break;
    }
    std::nth_element(all.begin(), all.begin() + static_cast<int64_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
}

Checkpoint open_source(const BenchOptions& o) {
    if (!o.model.empty()) return Checkpoint::open(o.model);
    return synthetic_checkpoint({.model = o.synthetic,
                                 .bits = o.bits,
                                 .head_bits = o.head_bits,
                                 .codebook = *codebook_named(o.codebook)});
}

// Running out of memory ends a process without a word, so it is asked about first.
void require_memory(const Checkpoint& c) {
    const uint64_t free = describe_machine().memory_available;
    if (free > 0 && c.total_bytes() > free)
        throw Error(Errc::out_of_memory, {c.folder().string(), {}, {}},
                    fmt::format("the weights take {}, this machine has {} free",
                                bytes_text(c.total_bytes()), bytes_text(free)));
}

void measure(const BenchOptions& o, Model& model, Stream& s, Results& r) {
    const auto max_of = [](const auto& v) { return *std::max_element(v.begin(), v.end()); };
    const int sequences = max_of(o.batches);
    const int64_t longest = std::max(max_of(o.contexts) + 1, max_of(o.prefills));
    warn_beyond_positions(model.spec(), longest);
    const auto steps = static_cast<int64_t>(o.contexts.size() * o.batches.size());
    Progress progress("measuring, steps");
    {
        // A GPU's steps are too short to be timed one by one.
        const int together = r.bandwidth.on_device ? 16 : 1;
        SpeedProbe probe(model, s, sequences, max_of(o.contexts) + together, o.kv_bits);
        r.cache_bytes = probe.cache_bytes(sequences, max_of(o.contexts), 1);
        for (const int64_t context : o.contexts)
            for (const int batch : o.batches) {
                Decode d{.context = context, .batch = batch};
                d.seconds = typical_seconds([&] {
                    return DecodeStep::supports(model.spec())
                               ? probe.decode(batch, context, together)
                               : probe.pass(batch, context, 1);
                });
                const uint64_t bytes =
                    weight_traffic(model, batch).bytes + probe.cache_bytes(batch, context, 1);
                d.bytes_per_second = static_cast<double>(bytes) / d.seconds;
                r.decode.push_back(d);
                progress.update(static_cast<int64_t>(r.decode.size()), steps);
            }
    }
    SpeedProbe probe(model, s, 1, max_of(o.prefills), o.kv_bits);
    for (const int64_t tokens : o.prefills)
        r.prefill.push_back({tokens, typical_seconds([&] { return probe.pass(1, 0, tokens); })});
}

void print_text(const Results& r) {
    print(fmt::format("model      {} on {}, {} threads\n", r.name, r.device, r.threads));
    if (r.kv_bits != KvBits{})
        print(fmt::format("cache      keys {} bits, values {} bits\n", r.kv_bits.keys,
                          r.kv_bits.values));
    print(fmt::format("memory     reads {:.1f} GB/s, copies {:.1f} GB/s\n", r.bandwidth.read / 1e9,
                      r.bandwidth.copy / 1e9));
    print(fmt::format("loading    {:.2f} s\n", r.load_seconds));
    print(fmt::format("weights    {} ({} read by a step), memory taken {}\n",
                      bytes_text(r.weight_bytes), bytes_text(r.traffic.bytes),
                      bytes_text(r.memory_bytes)));
    for (const Decode& d : r.decode)
        print(
            fmt::format("decode     context {:>6}, batch {:>3}: {:>9.2f} tokens/s, {:>8.2f} ms, "
                        "{:>6.1f} GB/s, {:>5.1f} % of copy\n",
                        d.context, d.batch, d.tps(), 1e3 * d.seconds, d.bytes_per_second / 1e9,
                        100 * r.share(d)));
    for (const Prefill& p : r.prefill)
        print(fmt::format("prefill    {:>6} tokens: {:>9.1f} tokens/s, {:.3f} s\n", p.tokens,
                          p.tps(), p.seconds));
}

void print_document(const Results& r) {
    Json decode = Json::array(), prefill = Json::array();
    for (const Decode& d : r.decode)
        decode.push_back({{"context", d.context},
                          {"batch", d.batch},
                          {"tps", d.tps()},
                          {"seconds", d.seconds},
                          {"gbps", d.bytes_per_second / 1e9},
                          {"share_of_copy", r.share(d)},
                          {"share_of_read", d.bytes_per_second / r.bandwidth.read}});
    for (const Prefill& p : r.prefill)
        prefill.push_back({{"tokens", p.tokens}, {"tps", p.tps()}, {"seconds", p.seconds}});
    print_json({{"model", r.name},
                {"device", r.device},
                {"gpu", gpu_name(r.device)},
                {"commit", EXL3_COMMIT},
                {"threads", r.threads},
                {"kv_bits", {r.kv_bits.keys, r.kv_bits.values}},
                {"isa", std::string(cpu::name_of(cpu::best_isa()))},
                {"read_gbps", r.bandwidth.read / 1e9},
                {"copy_gbps", r.bandwidth.copy / 1e9},
                {"load_seconds", r.load_seconds},
                {"weight_bytes", r.weight_bytes},
                {"step_weight_bytes", r.traffic.bytes},
                {"memory_bytes", r.memory_bytes},
                {"memory_over_weights",
                 static_cast<double>(r.memory_bytes) / static_cast<double>(r.weight_bytes)},
                {"decode", decode},
                {"prefill", prefill}});
}

void bench(const BenchOptions& o) {
    if (o.quantize) {
        bench_quantize({o.bits, *codebook_named(o.codebook), o.json, o.device});
        return;
    }
    const Runtime runtime = open_runtime(o.device);
    Results r{.name = o.model.empty()
                          ? fmt::format("{} {} bits {}", o.synthetic, o.bits, o.codebook)
                          : o.model,
              .device = runtime.device->name(),
              .kv_bits = o.kv_bits};
    {
        ThreadPool pool(o.device.threads);
        r.threads = pool.threads();
        r.bandwidth = bandwidth_of(*runtime.device, pool);
    }
    const uint64_t free_before = free_device_memory(runtime.device->name());
    std::unique_ptr<Model> model;
    {
        const Checkpoint checkpoint = open_source(o);
        require_memory(checkpoint);
        const auto start = Clock::now();
        model = load_model(*runtime.stream, checkpoint);
        r.load_seconds = seconds_since(start);
        r.weight_bytes = checkpoint.total_bytes();
    }
    r.traffic = weight_traffic(*model, 1);
    measure(o, *model, *runtime.stream, r);
    r.memory_bytes = r.bandwidth.on_device
                         ? free_before - free_device_memory(runtime.device->name())
                         : process_memory().resident;
    if (o.json)
        print_document(r);
    else
        print_text(r);
}

}  // namespace

void add_bench(Command& command) {
    auto& o = command.options<BenchOptions>();
    CLI::App& app = command.app;
    auto* source = app.add_option_group("source", "What to measure");
    source->add_option("-m,--model", o.model, "Folder of a model")->type_name("DIR");
    source->add_option("--synthetic", o.synthetic, "Shapes of a known model, random weights")
        ->check(CLI::IsMember(synthetic_models()));
    source->add_flag("--quantize", o.quantize, "Conversion instead of running");
    source->require_option(1);
    app.add_option("--bits", o.bits, "Of a synthetic model's matrices, or to convert to")
        ->check(CLI::Range(1, 8))
        ->capture_default_str();
    app.add_option("--head-bits", o.head_bits, "Of its output matrix")
        ->check(CLI::Range(1, 8))
        ->capture_default_str();
    app.add_option("--codebook", o.codebook, "Of its matrices")
        ->check(CLI::IsMember({"mul1", "mcg", "3inst"}))
        ->capture_default_str();
    app.add_option("--context", o.contexts, "Tokens before the one that is decoded")
        ->type_name("N,...")
        ->delimiter(',')
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 24))
        ->capture_default_str();
    app.add_option("--batch", o.batches, "Sequences decoded together")
        ->type_name("N,...")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--prefill", o.prefills, "Tokens of a prompt read at once")
        ->type_name("N,...")
        ->delimiter(',')
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
        ->capture_default_str();
    add_kv_bits_flag(command, o.kv_bits);
    add_json_flag(command, o.json);
    add_device_flags(command, o.device);
    command.run([&o] { bench(o); });
}

}  // namespace exl3::cli
