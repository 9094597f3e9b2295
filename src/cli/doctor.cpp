// Shows what this machine offers to the program, what is missing and what to do about it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <vector>

#include "backends/backends.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/units.h"
#include "cpu/cpu.h"

namespace exl3::cli {
namespace {

struct DoctorOptions {
    bool json = false;
};

/// A library of a GPU driver, and whether this machine has it.
struct Driver {
    const char* name;
    const char* library;
    bool found = false;
};

std::vector<Driver> find_drivers() {
    std::vector<Driver> drivers = {{"NVIDIA", "libcuda.so.1"}, {"AMD", "libamdhip64.so"}};
    for (Driver& d : drivers) {
        void* handle = ::dlopen(d.library, RTLD_LAZY | RTLD_LOCAL);
        d.found = handle != nullptr;
        if (handle) ::dlclose(handle);
    }
    return drivers;
}

/// One thing to know, and what to do about it if it is a problem.
struct Finding {
    std::string what, advice;
};

std::vector<Finding> find_problems(const Machine& m, const std::vector<Driver>& drivers,
                                   const std::vector<GpuDescription>& gpus) {
    std::vector<Finding> all;
    const cpu::Isa isa = cpu::best_isa();
    if (isa == cpu::Isa::scalar)
        all.push_back({"the CPU has no AVX2, FMA and F16C; everything runs as plain loops",
                       "use a machine with AVX2 (x86-64 from 2013 on)"});
    else if (isa == cpu::Isa::avx2)
        all.push_back({"the CPU has no AVX-512; the AVX2 kernels are about half as fast",
                       "nothing needs to be done"});
    if (m.usable_cores < m.cores)
        all.push_back({fmt::format("this process may use {} of {} cores", m.usable_cores, m.cores),
                       "lift the limit (taskset, cgroup cpuset) to use all of them"});
    if (m.memory_limit && *m.memory_limit < m.memory_total)
        all.push_back({fmt::format("memory is limited to {} of {}", bytes_text(*m.memory_limit),
                                   bytes_text(m.memory_total)),
                       "raise the limit of the container for models that need more"});
    for (const Driver& d : drivers)
        if (d.found && (gpu_backend().empty() || d.name != std::string_view("NVIDIA")))
            all.push_back({fmt::format("an {} GPU driver is here ({}), this build has no backend "
                                       "for it",
                                       d.name, d.library),
                           "models run on the CPU; build where nvcc is found (EXL3_GPU=CUDA)"});
    for (const GpuDescription& g : gpus)
        if (!g.problem.empty())
            all.push_back({fmt::format("{} ({}): {}", g.device, g.name, g.problem),
                           "update the driver, or build with its architecture in "
                           "EXL3_CUDA_ARCHS"});
    return all;
}

std::string backends() {
    return std::string(gpu_backend()) + (gpu_backend().empty() ? "" : ", ") + "cpu, ref";
}

void print_text(const Machine& m, const std::vector<Driver>& drivers,
                const std::vector<GpuDescription>& gpus, const std::vector<Finding>& problems) {
    print(fmt::format("cpu       {}\n", m.cpu_name));
    std::string features;
    for (const CpuFeature& f : m.features) features += (f.present ? " " : " no-") + f.name;
    print(fmt::format("features {}\n", features));
    print(fmt::format("kernels   {} (best of scalar, avx2, avx512, avx512vnni, avx512bf16)\n",
                      cpu::name_of(cpu::best_isa())));
    print(fmt::format("cores     {} usable of {}\n", m.usable_cores, m.cores));
    print(fmt::format("memory    {} free of {}\n", bytes_text(m.memory_available),
                      bytes_text(m.memory_total)));
    for (const Driver& d : drivers)
        print(fmt::format("gpu       {} driver {} ({})\n", d.name, d.found ? "found" : "not found",
                          d.library));
    for (const GpuDescription& g : gpus)
        print(fmt::format("{:<9} {}, {}, {} multiprocessors, {} free of {}\n", g.device, g.name,
                          g.architecture, g.multiprocessors, bytes_text(g.memory_free),
                          bytes_text(g.memory_total)));
    print(fmt::format("backends  {}\n", backends()));
    for (const Finding& f : problems) print(fmt::format("note      {}: {}\n", f.what, f.advice));
    if (problems.empty()) print("ok        nothing is missing for running models\n");
}

void print_document(const Machine& m, const std::vector<Driver>& drivers,
                    const std::vector<GpuDescription>& found,
                    const std::vector<Finding>& problems) {
    Json features = Json::object(), gpus = Json::array(), notes = Json::array();
    Json devices = Json::array(), backends = {"cpu", "ref"};
    for (const GpuDescription& g : found)
        devices.push_back({{"device", g.device},
                           {"name", g.name},
                           {"architecture", g.architecture},
                           {"multiprocessors", g.multiprocessors},
                           {"memory_total", g.memory_total},
                           {"memory_free", g.memory_free},
                           {"problem", g.problem}});
    if (!gpu_backend().empty()) backends.push_back(std::string(gpu_backend()));
    for (const CpuFeature& f : m.features) features[f.name] = f.present;
    for (const Driver& d : drivers)
        gpus.push_back({{"vendor", d.name}, {"library", d.library}, {"driver", d.found}});
    for (const Finding& f : problems) notes.push_back({{"what", f.what}, {"advice", f.advice}});
    Json d = {{"cpu", m.cpu_name},
              {"features", features},
              {"isa", std::string(cpu::name_of(cpu::best_isa()))},
              {"cores", m.cores},
              {"usable_cores", m.usable_cores},
              {"memory_total", m.memory_total},
              {"memory_available", m.memory_available},
              {"gpu_drivers", gpus},
              {"gpus", devices},
              {"backends", backends},
              {"notes", notes}};
    if (m.memory_limit) d["memory_limit"] = *m.memory_limit;
    print_json(d);
}

}  // namespace

void add_doctor(Command& command) {
    auto& o = command.options<DoctorOptions>();
    add_json_flag(command, o.json);
    command.run([&o] {
        const Machine machine = describe_machine();
        const auto drivers = find_drivers();
        const auto gpus = list_gpus();
        const auto problems = find_problems(machine, drivers, gpus);
        if (o.json)
            print_document(machine, drivers, gpus, problems);
        else
            print_text(machine, drivers, gpus, problems);
    });
}

}  // namespace exl3::cli
