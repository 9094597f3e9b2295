#pragma once
#include <string>

#include "backends/backends.h"
#include "cli/command.h"
#include "ops/attention.h"

namespace exl3::cli {

/// -m, --model DIR, required.
void add_model_flag(Command& command, std::string& folder);

/// --device, --threads and --cpu-isa, for every command that computes.
struct DeviceFlags {
    std::string device = "auto";
    int threads = 0;
    std::string cpu_isa;
    DeviceOptions options() const { return {.threads = threads, .cpu_isa = cpu_isa}; }
};
void add_device_flags(Command& command, DeviceFlags& flags);

/// --kv-bits K[,V]: how many bits a cached key and value take, 2 to 8; 16: f16.
void add_kv_bits_flag(Command& command, KvBits& bits);

/// --json
void add_json_flag(Command& command, bool& json);

/// --log-level, on every command; it takes effect as soon as it is parsed.
void add_log_level_flag(Command& command);

}  // namespace exl3::cli
