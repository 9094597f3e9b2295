#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/half.h"
#include "base/thread_pool.h"
#include "core/device.h"

namespace exl3::cpu {

/// Instruction-set tiers, each including those before it.
enum class Isa : uint8_t {
    scalar,      ///< the baseline of the build
    avx2,        ///< AVX2, FMA, F16C
    avx512,      ///< AVX-512 F, BW, VL, DQ (Skylake-X)
    avx512vnni,  ///< + VNNI, VBMI, VBMI2 (Ice Lake)
    avx512bf16,  ///< + BF16 (Zen 4, Sapphire Rapids)
};
std::string_view name_of(Isa isa);
std::optional<Isa> isa_named(std::string_view name);
Isa best_isa();                     ///< of this machine
std::vector<Isa> available_isas();  ///< scalar first, best last

struct CpuOptions {
    int threads = 0;              ///< 0: one per core this process may use
    std::optional<Isa> isa = {};  ///< lowers the tier (--cpu-isa); never raises it
};

std::unique_ptr<Device> open(const CpuOptions& options = {});

/// For kernels: the tier and the threads of the device that `s` belongs to.
Isa isa_of(const Stream& s);
ThreadPool& pool_of(const Stream& s);

}  // namespace exl3::cpu
