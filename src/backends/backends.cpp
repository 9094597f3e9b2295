#include "backends/backends.h"

#include <fmt/format.h>

#include "cpu/cpu.h"
#include "ref/ref.h"

namespace exl3 {

Result<std::unique_ptr<Device>> open_device(std::string_view name, const DeviceOptions& options) {
    if (name == "ref") return ref::open();
    if (name == "cpu" || name == "auto") {
        cpu::CpuOptions cpu{.threads = options.threads};
        if (!options.cpu_isa.empty()) {
            cpu.isa = cpu::isa_named(options.cpu_isa);
            if (!cpu.isa)
                return Error(
                    Errc::invalid_argument, {},
                    fmt::format("--cpu-isa: '{}' found, needed one of scalar, avx2, avx512, "
                                "avx512vnni, avx512bf16",
                                options.cpu_isa));
        }
        return cpu::open(cpu);
    }
    return Error(Errc::invalid_argument, {},
                 fmt::format("--device: '{}' found, this build has auto, cpu and ref", name));
}

}  // namespace exl3
