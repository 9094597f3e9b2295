#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "core/device.h"

namespace exl3 {

struct DeviceOptions {
    int threads = 0;      ///< of the CPU device; 0: one per core this process may use
    std::string cpu_isa;  ///< lowers the CPU device's tier; "": the best of this machine
};

/// "auto" (a usable GPU, else the CPU), "ref" or "cpu"; invalid_argument names the devices there
/// are.
Result<std::unique_ptr<Device>> open_device(std::string_view name,
                                            const DeviceOptions& options = {});

}  // namespace exl3
