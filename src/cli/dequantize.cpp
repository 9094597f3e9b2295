// EXL3 to a plain Hugging Face checkpoint.
#include "quant/dequantize.h"

#include <fmt/format.h>

#include "base/log.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"

namespace exl3::cli {
namespace {

struct Options {
    std::string model, out, dtype = "f16";
    int64_t shard_mb = 4096;
    bool json = false;
    DeviceFlags device;
};

void run(const Options& o) {
    const Runtime runtime = open_runtime(o.device);
    Progress progress("dequantizing, bytes");
    const DequantizeReport r = dequantize(
        *runtime.stream,
        {.source = o.model,
         .output = o.out,
         .dtype = o.dtype == "f32"    ? DType::f32
                  : o.dtype == "bf16" ? DType::bf16
                                      : DType::f16,
         .shard_mb = o.shard_mb,
         .cancel = &stop_requested(),
         .progress = [&](int64_t done, int64_t total) { progress.update(done, total); }});
    if (o.json)
        print_json({{"matrices", r.matrices}, {"bytes", r.bytes}, {"dtype", o.dtype}});
    else
        log(LogLevel::info, "{} matrices decoded, {} bytes of tensors in {}", r.matrices, r.bytes,
            o.out);
}

}  // namespace

void add_dequantize(Command& command) {
    auto& o = command.options<Options>();
    add_model_flag(command, o.model);
    CLI::App& app = command.app;
    app.add_option("-o,--out", o.out, "Folder to make")->type_name("OUT")->required();
    app.add_option("--dtype", o.dtype, "Of the decoded matrices")
        ->check(CLI::IsMember({"f16", "bf16", "f32"}))
        ->capture_default_str();
    app.add_option("--shard-size", o.shard_mb, "Largest file; 0: one file")
        ->type_name("MB")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
        ->capture_default_str();
    add_json_flag(command, o.json);
    add_device_flags(command, o.device);
    command.run([&o] { run(o); });
}

}  // namespace exl3::cli
