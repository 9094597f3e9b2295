#include "cli/options.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/log.h"

namespace exl3::cli {
namespace {

// Only the form is judged here: whether this build and machine have the device is not a matter of
// usage.
std::string check_device(const std::string& name) {
    if (name == "auto" || name == "cpu" || name == "ref") return {};
    for (const std::string kind : {"cuda:", "hip:"})
        if (name.starts_with(kind) && name.size() > kind.size() && name.size() < 10 &&
            name.find_first_not_of("0123456789", kind.size()) == std::string::npos)
            return {};
    return "found '" + name + "', needed auto, cpu, ref or cuda:N";
}

// "4", "8,4": keys, then values, which are as the keys when left out.
std::optional<KvBits> parse_kv_bits(const std::string& text) {
    KvBits bits;
    const auto read = [](std::string_view part, int& out) {
        const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), out);
        return problem == std::errc() && end == part.data() + part.size() && is_kv_bits(out);
    };
    const size_t comma = text.find(',');
    if (!read(std::string_view(text).substr(0, comma), bits.keys)) return std::nullopt;
    bits.values = bits.keys;
    if (comma != std::string::npos && !read(std::string_view(text).substr(comma + 1), bits.values))
        return std::nullopt;
    return bits;
}

}  // namespace

void add_model_flag(Command& command, std::string& folder) {
    command.app.add_option("-m,--model", folder, "Folder of the model")
        ->type_name("DIR")
        ->required();
}

void add_device_flags(Command& command, DeviceFlags& flags) {
    CLI::App& app = command.app;
    app.add_option("--device", flags.device, "Where to compute")
        ->type_name("auto|cpu|ref|cuda:N")
        ->check(CLI::Validator(check_device, ""))
        ->envname("EXL3_DEVICE")
        ->capture_default_str();
    app.add_option("--threads", flags.threads, "CPU threads; 0: one per core")
        ->type_name("N")
        ->check(CLI::Range(0, 4096))
        ->envname("EXL3_THREADS")
        ->capture_default_str();
    app.add_option("--cpu-isa", flags.cpu_isa, "Use no later CPU instructions than these")
        ->check(CLI::IsMember({"scalar", "avx2", "avx512", "avx512vnni", "avx512bf16"}));
}

void add_kv_bits_flag(Command& command, KvBits& bits) {
    const auto check = [](const std::string& text) -> std::string {
        if (parse_kv_bits(text)) return {};
        return "found '" + text + "', needed K or K,V, each 2 to 8 or 16";
    };
    command.app
        .add_option_function<std::string>(
            "--kv-bits", [&bits](const std::string& text) { bits = *parse_kv_bits(text); },
            "Bits of a cached key and value; 16: f16")
        ->type_name("K[,V]")
        ->check(CLI::Validator(check, ""));
}

void add_json_flag(Command& command, bool& json) {
    command.app.add_flag("--json", json, "Print one JSON document");
}

void add_log_level_flag(Command& command) {
    const auto set = [](const std::string& name) {
        set_log_level(name == "error"  ? LogLevel::error
                      : name == "warn" ? LogLevel::warn
                      : name == "info" ? LogLevel::info
                                       : LogLevel::debug);
    };
    command.app.add_option_function<std::string>("--log-level", set, "What to say on stderr")
        ->check(CLI::IsMember({"error", "warn", "info", "debug"}))
        ->envname("EXL3_LOG_LEVEL")
        ->default_str("info");
}

}  // namespace exl3::cli
