#include "cli/machine.h"

#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/thread_pool.h"

namespace exl3::cli {
namespace {

// The value of "KEY:   VALUE" in a file of /proc, "" if it is not there.
std::string proc_value(const char* file, std::string_view key) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        const size_t colon = line.find(':');
        if (colon == std::string::npos || !line.starts_with(key)) continue;
        const size_t begin = line.find_first_not_of(" \t", colon + 1);
        return begin == std::string::npos ? "" : line.substr(begin);
    }
    return "";
}

// "16384 kB"
uint64_t proc_bytes(const char* file, std::string_view key) {
    uint64_t kib = 0;
    std::istringstream(proc_value(file, key)) >> kib;
    return kib * 1024;
}

std::optional<uint64_t> group_limit() {
    uint64_t bytes = 0;
    if (std::ifstream("/sys/fs/cgroup/memory.max") >> bytes) return bytes;
    return std::nullopt;
}

std::vector<CpuFeature> cpu_features() {
#if defined(__x86_64__) || defined(__i386__)
    return {
        {"avx2", __builtin_cpu_supports("avx2") != 0},
        {"fma", __builtin_cpu_supports("fma") != 0},
        {"f16c", __builtin_cpu_supports("f16c") != 0},
        {"avx512f", __builtin_cpu_supports("avx512f") != 0},
        {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
        {"avx512vl", __builtin_cpu_supports("avx512vl") != 0},
        {"avx512dq", __builtin_cpu_supports("avx512dq") != 0},
        {"avx512vnni", __builtin_cpu_supports("avx512vnni") != 0},
        {"avx512vbmi", __builtin_cpu_supports("avx512vbmi") != 0},
        {"avx512vbmi2", __builtin_cpu_supports("avx512vbmi2") != 0},
        {"avx512bf16", __builtin_cpu_supports("avx512bf16") != 0},
    };
#else
    return {};
#endif
}

}  // namespace

Machine describe_machine() {
    Machine m;
    m.cpu_name = proc_value("/proc/cpuinfo", "model name");
    if (m.cpu_name.empty()) m.cpu_name = "unknown";
    m.features = cpu_features();
    m.cores = static_cast<int>(std::thread::hardware_concurrency());
    m.usable_cores = ThreadPool::available_cores();
    m.memory_total = proc_bytes("/proc/meminfo", "MemTotal");
    m.memory_available = proc_bytes("/proc/meminfo", "MemAvailable");
    m.memory_limit = group_limit();
    return m;
}

ProcessMemory process_memory() {
    return {proc_bytes("/proc/self/status", "VmRSS"), proc_bytes("/proc/self/status", "VmHWM")};
}

}  // namespace exl3::cli
