#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"

namespace exl3::gpu {

/// A GPU as its driver describes it.
struct GpuInfo {
    std::string name;          ///< "NVIDIA H200"
    std::string architecture;  ///< "sm_90"
    int multiprocessors = 0;
    uint64_t memory_total = 0, memory_free = 0;  ///< bytes
    std::string problem;  ///< why kernels of this build cannot run on it; empty: they can
};

/// What the driver lists, in its order; empty without a driver. Never throws.
std::vector<GpuInfo> list();

/// Opens GPU `index`. Throws Error{invalid_argument} naming the GPUs there are, Error{device} for
/// one that this build has no kernels for.
std::unique_ptr<Device> open(int index);

/// Bytes read and written per second by a copy of `bytes` from device memory to device memory, the
/// best of several. Throws Error{out_of_memory}.
double copy_bandwidth(Device& device, uint64_t bytes = uint64_t{1} << 30);
/// Bytes per second that a kernel reads at best.
double read_bandwidth(Device& device, uint64_t bytes = uint64_t{1} << 30);

}  // namespace exl3::gpu
