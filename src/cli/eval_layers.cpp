// exl3 eval layers
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arch/arch.h"
#include "cli/eval.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "quant/row_states.h"

namespace exl3::cli {
namespace {

struct LayersOptions {
    std::string model, ref, text;
    int ctx = 512, rows = 8;
    bool json = false;
    DeviceFlags device;
};

/// How far the states of one model are from the other's after a layer.
struct LayerError {
    std::string layer;
    double relative = 0;  ///< |x - reference| / |reference|
    double one_minus_cosine = 0;
};

LayerError compare(const std::string& layer, const std::vector<float>& x,
                   const std::vector<float>& reference) {
    double error = 0, square = 0, ours = 0, dot = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        const double a = x[i], b = reference[i];
        error += (a - b) * (a - b);
        square += b * b;
        ours += a * a;
        dot += a * b;
    }
    return {layer, std::sqrt(error / std::max(square, 1e-300)),
            1 - dot / std::max(std::sqrt(square * ours), 1e-300)};
}

void report(const std::vector<LayerError>& layers, bool json) {
    if (json) {
        Json all = Json::array();
        for (const LayerError& l : layers)
            all.push_back({{"layer", l.layer},
                           {"relative_error", l.relative},
                           {"one_minus_cosine", l.one_minus_cosine}});
        print_json({{"layers", all}});
        return;
    }
    print(fmt::format("{:<32} {:>14} {:>14}\n", "after", "relative error", "1 - cosine"));
    for (const LayerError& l : layers)
        print(fmt::format("{:<32} {:>14.6f} {:>14.8f}\n", l.layer, l.relative, l.one_minus_cosine));
}

void eval_layers(const LayersOptions& o) {
    const Checkpoint model = Checkpoint::open(o.model), ref = Checkpoint::open(o.ref);
    const ModelSpec spec = describe(model), ref_spec = describe(ref);
    if (spec.blocks.size() != ref_spec.blocks.size() || spec.hidden != ref_spec.hidden)
        throw Error(Errc::invalid_argument, {o.ref, {}, {}},
                    fmt::format("found {} layers of width {}, needed {} of {} as in {}",
                                ref_spec.blocks.size(), ref_spec.hidden, spec.blocks.size(),
                                spec.hidden, o.model));
    const Tokenizer tokenizer = Tokenizer::load(o.model);
    const auto text = read_text_tokens(tokenizer, o.text, EvalConvention::exl3);
    std::vector<std::vector<int32_t>> rows;
    for (auto at = text.begin(); text.end() - at >= o.ctx && std::ssize(rows) < o.rows; at += o.ctx)
        rows.emplace_back(at, at + o.ctx);
    if (rows.empty())
        throw Error(Errc::invalid_argument, {o.text, {}, {}},
                    fmt::format("found {} tokens, needed at least {}", text.size(), o.ctx));
    const Runtime runtime = open_runtime(o.device);
    Stream& s = *runtime.stream;
    const auto stop = [] {
        if (stop_requested()) throw Error(Errc::cancelled, {}, "interrupted");
    };
    RowStates ours(s, model, spec, rows), theirs(s, ref, ref_spec, rows);
    ours.embed();
    theirs.embed();
    Progress progress("comparing, layers");
    std::vector<LayerError> layers = {compare("embedding", ours.values(), theirs.values())};
    const auto total = static_cast<int>(spec.blocks.size());
    for (int i = 0; i < total; ++i) {
        const auto at = static_cast<size_t>(i);
        ours.forward(Block(s, model, spec.blocks[at], spec.hidden, i), i, nullptr, stop);
        theirs.forward(Block(s, ref, ref_spec.blocks[at], spec.hidden, i), i, nullptr, stop);
        layers.push_back(compare(spec.blocks[at].key.str(), ours.values(), theirs.values()));
        progress.update(i + 1, total);
    }
    report(layers, o.json);
}

}  // namespace

void add_eval_layers(Command& command) {
    auto& o = command.options<LayersOptions>();
    add_model_flag(command, o.model);
    CLI::App& app = command.app;
    app.add_option("--ref", o.ref, "Folder of the reference model")->type_name("DIR")->required();
    app.add_option("--text", o.text, "The text; -: stdin")->type_name("F")->required();
    app.add_option("--ctx", o.ctx, "Tokens in a row")
        ->type_name("N")
        ->check(CLI::Range(2, 1 << 24))
        ->capture_default_str();
    app.add_option("--rows", o.rows, "At most so many rows")
        ->type_name("N")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    add_json_flag(command, o.json);
    add_device_flags(command, o.device);
    command.run([&o] { eval_layers(o); });
}

}  // namespace exl3::cli
