#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace exl3::cli {

struct CpuFeature {
    std::string name;
    bool present = false;
};

/// The machine as this process sees it.
struct Machine {
    std::string cpu_name;
    std::vector<CpuFeature> features;  ///< those that kernels look for
    int cores = 0, usable_cores = 0;
    uint64_t memory_total = 0, memory_available = 0;  ///< bytes
    std::optional<uint64_t> memory_limit;             ///< of the control group, bytes
};
Machine describe_machine();

/// Bytes of memory this process holds now and at most so far; 0 where the system does not tell.
struct ProcessMemory {
    uint64_t resident = 0, peak = 0;
};
ProcessMemory process_memory();

}  // namespace exl3::cli
