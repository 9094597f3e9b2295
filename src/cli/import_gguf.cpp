// GGUF to a plain Hugging Face checkpoint.
#include "import/import_gguf.h"

#include <fmt/format.h>

#include "base/log.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"

namespace exl3::cli {
namespace {

struct Options {
    std::string file, out, dtype = "auto";
    int64_t shard_mb = 4096;
    int threads = 0;
    bool json = false;
};

std::optional<DType> dtype_named(const std::string& name) {
    if (name == "f32") return DType::f32;
    if (name == "f16") return DType::f16;
    if (name == "bf16") return DType::bf16;
    return std::nullopt;
}

void run(const Options& o) {
    ThreadPool pool(o.threads);
    Progress progress("importing, bytes");
    const ImportReport r = import_gguf(
        pool, {.source = o.file,
               .output = o.out,
               .dtype = dtype_named(o.dtype),
               .shard_mb = o.shard_mb,
               .cancel = &stop_requested(),
               .progress = [&](int64_t done, int64_t total) { progress.update(done, total); }});
    if (o.json)
        print_json({{"architecture", r.architecture}, {"tensors", r.tensors}, {"bytes", r.bytes}});
    else
        log(LogLevel::info, "{}: {} tensors, {} bytes in {}", r.architecture, r.tensors, r.bytes,
            o.out);
}

}  // namespace

void add_import_gguf(Command& command) {
    auto& o = command.options<Options>();
    CLI::App& app = command.app;
    app.add_option("file", o.file, "GGUF file; of a split model any part")
        ->type_name("FILE")
        ->required();
    app.add_option("-o,--out", o.out, "Folder to make")->type_name("OUT")->required();
    app.add_option("--dtype", o.dtype,
                   "Of the tensors; auto: the narrowest without loss, f16 for quantized ones")
        ->check(CLI::IsMember({"auto", "f16", "bf16", "f32"}))
        ->capture_default_str();
    app.add_option("--shard-size", o.shard_mb, "Largest file; 0: one file")
        ->type_name("MB")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
        ->capture_default_str();
    app.add_option("--threads", o.threads, "Threads; 0: one per core")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    add_json_flag(command, o.json);
    command.run([&o] { run(o); });
}

}  // namespace exl3::cli
