#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/device.h"

namespace exl3 {

struct DeviceOptions {
    int threads = 0;      ///< of the CPU device; 0: one per core this process may use
    std::string cpu_isa;  ///< lowers the CPU device's tier; "": the best of this machine
};

/// A GPU of this machine.
struct GpuDescription {
    std::string device;  ///< as open_device() takes it: "cuda:0"
    std::string name;    ///< "NVIDIA H200"
    std::string architecture;
    int multiprocessors = 0;
    uint64_t memory_total = 0, memory_free = 0;  ///< bytes
    std::string problem;                         ///< why it cannot be used; empty: it can
};
/// The GPUs that this build's backend finds; none without a backend or a driver.
std::vector<GpuDescription> list_gpus();
/// "cuda", or "" in a build without a GPU backend.
std::string_view gpu_backend();

/// Bytes per second of device memory, measured. Reads alone, and copies counted twice.
struct DeviceBandwidth {
    double read = 0, copy = 0;
};
/// For a GPU; nothing for the CPU and ref, whose memory is the machine's.
std::optional<DeviceBandwidth> measure_device_bandwidth(Device& device);

/// "auto" (a usable GPU, else the CPU), "cpu", "ref" or "cuda:N"; invalid_argument names the
/// devices there are.
Result<std::unique_ptr<Device>> open_device(std::string_view name,
                                            const DeviceOptions& options = {});

}  // namespace exl3
