#include "cpu/cpu.h"

#include <algorithm>
#include <array>

#include "ops/ops.h"
#include "ref/ref.h"

namespace exl3::cpu {

namespace {

constexpr std::array<std::string_view, 5> kIsaNames = {"scalar", "avx2", "avx512", "avx512vnni",
                                                       "avx512bf16"};

}  // namespace

std::string_view name_of(Isa isa) {
    return kIsaNames[static_cast<size_t>(isa)];
}

std::optional<Isa> isa_named(std::string_view name) {
    const auto it = std::find(kIsaNames.begin(), kIsaNames.end(), name);
    if (it == kIsaNames.end()) return std::nullopt;
    return static_cast<Isa>(it - kIsaNames.begin());
}

Isa best_isa() {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("f16c"))
        return Isa::scalar;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return Isa::avx2;
    if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512vbmi") ||
        !__builtin_cpu_supports("avx512vbmi2"))
        return Isa::avx512;
    return __builtin_cpu_supports("avx512bf16") ? Isa::avx512bf16 : Isa::avx512vnni;
}

std::vector<Isa> available_isas() {
    std::vector<Isa> v;
    for (int i = 0; i <= static_cast<int>(best_isa()); ++i) v.push_back(static_cast<Isa>(i));
    return v;
}

#define EXL3_DECL_0(name, Args)
#define EXL3_DECL_1(name, Args) void name(Stream&, const Args&);
#define EXL3_OP(name, Args, cpu, gpu) EXL3_DECL_##cpu(name, Args)
#include "ops/ops.def"
#undef EXL3_OP

#define EXL3_SET_0(name)
#define EXL3_SET_1(name) t.name = name;

namespace {

const OpTable& table() {
    static const OpTable merged = [] {
        OpTable t = ref::table();
#define EXL3_OP(name, Args, cpu, gpu) EXL3_SET_##cpu(name)
#include "ops/ops.def"
#undef EXL3_OP
        return t;
    }();
    return merged;
}

struct CpuDevice final : Device {
    explicit CpuDevice(const CpuOptions& options)
        : isa(std::min(options.isa.value_or(best_isa()), best_isa())), pool(options.threads) {}
    std::string name() const override { return "cpu"; }
    Buffer allocate(size_t bytes) override { return allocate_host(bytes); }
    std::unique_ptr<Stream> make_stream() override { return std::make_unique<HostStream>(*this); }
    const OpTable& ops() const override { return table(); }

    Isa isa;
    ThreadPool pool;
};

CpuDevice& device_of(const Stream& s) {
    // Only the CPU's own op table leads here.
    return static_cast<CpuDevice&>(s.device());
}

}  // namespace

Isa isa_of(const Stream& s) {
    return device_of(s).isa;
}

ThreadPool& pool_of(const Stream& s) {
    return device_of(s).pool;
}

std::unique_ptr<Device> open(const CpuOptions& options) {
    return std::make_unique<CpuDevice>(options);
}

}  // namespace exl3::cpu
