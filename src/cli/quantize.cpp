// A Hugging Face checkpoint to EXL3.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <regex>

#include "base/log.h"
#include "cli/open_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "quant/convert.h"

namespace exl3::cli {
namespace {

constexpr int kBestSteps = 400;

struct Options {
    ConvertOptions convert;
    std::string source, output, work, codebook = "mul1";
    std::vector<std::string> cal_files, overrides;
    bool json = false, fast = false, best = false;
    std::optional<int> distill_steps;
    DeviceFlags device;
};

// "model.layers.3.mlp.down_proj" belongs to the row "model.layers.3", "lm_head" to its own.
std::string row_of(const std::string& name) {
    const std::string_view marker = ".layers.";
    const size_t at = name.find(marker);
    if (at == std::string::npos) return name;
    return name.substr(0, name.find('.', at + marker.size()));
}

void print_table(const ConvertReport& r) {
    struct Row {
        double bits = 0, error = 0;
        int count = 0;
    };
    std::vector<std::string> order;
    std::map<std::string, Row> rows;
    for (const ConvertedTensor& t : r.tensors) {
        const std::string name = row_of(t.name);
        if (!rows.contains(name)) order.push_back(name);
        Row& row = rows[name];
        row.bits += t.bits;
        row.error += t.proxy_err;
        ++row.count;
    }
    print(fmt::format("{:<32} {:>6} {:>12}\n", "layer", "bits", "proxy error"));
    for (const std::string& name : order)
        print(fmt::format("{:<32} {:>6.2f} {:>12.6f}\n", name, rows[name].bits / rows[name].count,
                          rows[name].error / rows[name].count));
    print(fmt::format("{:.3f} bits per weight in the layers, {} in the head; {} bytes; {:.1f} s\n",
                      r.bpw_layers, r.bpw_head, r.bytes, r.seconds));
}

Json to_json(const ConvertReport& r) {
    Json tensors = Json::array();
    for (const ConvertedTensor& t : r.tensors)
        tensors.push_back({{"name", t.name}, {"bits", t.bits}, {"proxy_err", t.proxy_err}});
    return {{"bpw_layers", r.bpw_layers}, {"bpw_head", r.bpw_head},
            {"bytes", r.bytes},           {"seconds", r.seconds},
            {"tensors", tensors},         {"resumed_layers", r.resumed_layers}};
}

std::pair<std::string, int> parse_override(const std::string& text) {
    const auto bad = [&](const std::string& what) {
        return Error(Errc::invalid_argument, {},
                     fmt::format("--override: found '{}', needed REGEX=BITS{}", text, what));
    };
    const size_t at = text.rfind('=');
    if (at == std::string::npos || at == 0 || at + 2 != text.size() || text[at + 1] < '1' ||
        text[at + 1] > '8')
        throw bad(" with 1 to 8 bits");
    try {
        const std::regex check(text.substr(0, at));
    } catch (const std::regex_error& e) {
        throw bad(fmt::format(": {}", e.what()));
    }
    return {text.substr(0, at), text[at + 1] - '0'};
}

void run(const Options& o) {
    const Runtime runtime = open_runtime(o.device);
    ConvertOptions c = o.convert;
    c.source = o.source;
    c.output = o.output;
    c.work = o.work;
    c.codebook = *codebook_named(o.codebook);
    for (const std::string& f : o.cal_files) c.cal_files.emplace_back(f);
    for (const std::string& text : o.overrides) c.overrides.push_back(parse_override(text));
    // --fast rounds and allocates as by default; gradient descent is what takes longest.
    if (o.fast) c.distill_steps = 0;
    if (o.best) c.distill_steps = kBestSteps;
    if (o.distill_steps) c.distill_steps = *o.distill_steps;
    c.cancel = &stop_requested();
    Progress progress("quantizing, layers");
    c.progress = [&](const std::string& what, int done, int total) {
        log(LogLevel::debug, "{}", what);
        progress.update(done, total);
    };
    const ConvertReport r = convert(*runtime.stream, c);
    if (r.resumed_layers > 0)
        log(LogLevel::info, "{} layers were found finished in the work folder", r.resumed_layers);
    if (o.json)
        print_json(to_json(r));
    else
        print_table(r);
}

}  // namespace

void add_quantize(Command& command) {
    auto& o = command.options<Options>();
    ConvertOptions& c = o.convert;
    CLI::App& app = command.app;
    app.add_option("-i,--in", o.source, "Checkpoint to convert")->type_name("SRC")->required();
    app.add_option("-o,--out", o.output, "Folder to make")->type_name("OUT")->required();
    app.add_option("-b,--bits", c.bits, "Average bits per weight, fractions too")
        ->check(CLI::Range(1.0, 8.0))
        ->required();
    app.add_option("--head-bits", c.head_bits,
                   "Bits of the output head (default: 6 in the budget, which the head and the "
                   "layers share)")
        ->check(CLI::Range(1, 8));
    app.add_option("--override", o.overrides,
                   "Bits of the matrices whose name matches, outside the budget; repeatable")
        ->type_name("REGEX=BITS")
        ->allow_extra_args(false);
    app.add_option("--codebook", o.codebook, "Map from trellis states to weights")
        ->check(CLI::IsMember({"mul1", "mcg", "3inst"}))
        ->capture_default_str();
    app.add_option("--work", o.work, "Where unfinished work is kept (default: OUT.work)")
        ->type_name("DIR");
    app.add_option("--cal-rows", c.cal_rows, "Calibration sequences")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    app.add_option("--cal-cols", c.cal_cols, "Tokens in each")
        ->check(CLI::Range(2, 1 << 20))
        ->capture_default_str();
    app.add_option("--cal-file", o.cal_files,
                   "Calibration text instead of the bundled one; repeatable")
        ->type_name("FILE")
        ->allow_extra_args(false);
    app.add_flag("--hq", c.hq, "One more bit for attention, outside the budget");
    app.add_flag("--plain", c.plain, "The published algorithm, for comparison");
    app.add_option("--seed", c.seed, "Of random signs and calibration")->capture_default_str();
    app.add_option("--shard-size", c.shard_mb, "Largest file; 0: one file")
        ->type_name("MB")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
        ->capture_default_str();
    app.add_flag("--restart", c.restart, "Drop unfinished work instead of continuing it");
    app.add_flag("--fast", o.fast, "Leave out what costs more than the rounding itself");
    app.add_flag("--best", o.best, "Several times the work for the last few percent")
        ->excludes("--fast");
    app.add_flag("--by-position{false}", c.by_worth,
                 "Spare bits to attention and outer layers instead of where they count most");
    app.add_flag("--two-sided", c.two_sided,
                 "Round by what each matrix's outputs are worth too, up to 5 bits");
    app.add_option("--distill-steps", o.distill_steps,
                   "Steps of gradient descent on all scales at the end; 0: none")
        ->check(CLI::Range(0, 1 << 20));
    app.add_flag("--verify", c.verify, "Read the result back and check every tensor");
    add_json_flag(command, o.json);
    add_device_flags(command, o.device);
    command.run([&o] { run(o); });
}

}  // namespace exl3::cli
