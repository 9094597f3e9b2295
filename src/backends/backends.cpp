#include "backends/backends.h"

#include <fmt/format.h>

#include <charconv>

#include "cpu/cpu.h"
#include "ref/ref.h"
#if defined(EXL3_GPU_BACKEND)
#include "gpu/gpu.h"
#endif

namespace exl3 {
namespace {

Result<std::unique_ptr<Device>> open_cpu(const DeviceOptions& options) {
    cpu::CpuOptions cpu{.threads = options.threads};
    if (!options.cpu_isa.empty()) {
        cpu.isa = cpu::isa_named(options.cpu_isa);
        if (!cpu.isa)
            return Error(Errc::invalid_argument, {},
                         fmt::format("--cpu-isa: '{}' found, needed one of scalar, avx2, avx512, "
                                     "avx512vnni, avx512bf16",
                                     options.cpu_isa));
    }
    return cpu::open(cpu);
}

#if defined(EXL3_GPU_BACKEND)

// N of "cuda:N" or "cuda" (0); nothing for another name.
std::optional<int> gpu_index(std::string_view name) {
    const std::string_view backend = gpu_backend();
    if (name == backend) return 0;
    if (!name.starts_with(backend) || name.size() < backend.size() + 2 ||
        name[backend.size()] != ':')
        return std::nullopt;
    int index = 0;
    const char *begin = name.data() + backend.size() + 1, *end = name.data() + name.size();
    const auto [at, error] = std::from_chars(begin, end, index);
    if (error != std::errc() || at != end || index < 0) return std::nullopt;
    return index;
}

#endif

}  // namespace

#if defined(EXL3_GPU_BACKEND)

std::string_view gpu_backend() {
    return "cuda";
}

std::vector<GpuDescription> list_gpus() {
    std::vector<GpuDescription> all;
    for (const gpu::GpuInfo& g : gpu::list())
        all.push_back({fmt::format("{}:{}", gpu_backend(), all.size()), g.name, g.architecture,
                       g.multiprocessors, g.memory_total, g.memory_free, g.problem});
    return all;
}

std::optional<DeviceBandwidth> measure_device_bandwidth(Device& device) {
    if (!gpu_index(device.name())) return std::nullopt;
    return DeviceBandwidth{gpu::read_bandwidth(device), gpu::copy_bandwidth(device)};
}

#else

std::string_view gpu_backend() {
    return "";
}

std::vector<GpuDescription> list_gpus() {
    return {};
}

std::optional<DeviceBandwidth> measure_device_bandwidth(Device&) {
    return std::nullopt;
}

#endif

Result<std::unique_ptr<Device>> open_device(std::string_view name, const DeviceOptions& options) {
    if (name == "ref") return ref::open();
    if (name == "cpu") return open_cpu(options);
    if (name == "auto") {
        for (const GpuDescription& g : list_gpus())
            if (g.problem.empty()) return open_device(g.device, options);
        return open_cpu(options);
    }
#if defined(EXL3_GPU_BACKEND)
    if (const std::optional<int> index = gpu_index(name)) try {
            return gpu::open(*index);
        } catch (const Error& e) {
            return e;
        }
    constexpr std::string_view kDevices = "auto, cpu, ref and cuda:N";
#else
    constexpr std::string_view kDevices = "auto, cpu and ref";
#endif
    return Error(Errc::invalid_argument, {},
                 fmt::format("--device: '{}' found, this build has {}", name, kDevices));
}

}  // namespace exl3
