// Shows what this machine offers to the program, what is missing and what to do about it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <vector>

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

std::vector<Finding> find_problems(const Machine& m, const std::vector<Driver>& drivers) {
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
        if (d.found)
            all.push_back({fmt::format("an {} GPU driver is here ({}), this build has no GPU "
                                       "backend",
                                       d.name, d.library),
                           "models run on the CPU; use a build with a GPU backend"});
    return all;
}

void print_text(const Machine& m, const std::vector<Driver>& drivers,
                const std::vector<Finding>& problems) {
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
    print("backends  cpu, ref\n");
    for (const Finding& f : problems) print(fmt::format("note      {}: {}\n", f.what, f.advice));
    if (problems.empty()) print("ok        nothing is missing for running models on the CPU\n");
}

void print_document(const Machine& m, const std::vector<Driver>& drivers,
                    const std::vector<Finding>& problems) {
    Json features = Json::object(), gpus = Json::array(), notes = Json::array();
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
              {"backends", {"cpu", "ref"}},
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
        const auto problems = find_problems(machine, drivers);
        if (o.json)
            print_document(machine, drivers, problems);
        else
            print_text(machine, drivers, problems);
    });
}

}  // namespace exl3::cli
