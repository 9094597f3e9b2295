// exl3 eval ppl
#include <fmt/format.h>

#include "base/log.h"
#include "cli/eval.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"

namespace exl3::cli {
namespace {

struct PplOptions {
    std::string model, text, convention = "exl3";
    int ctx = 0, rows = 100;
    bool json = false;
    DeviceFlags device;
};

void report(const PplOptions& o, const Perplexity& p) {
    if (p.nonfinite > 0)
        log(LogLevel::warn, "{} predictions had logits that are not finite and were left out",
            p.nonfinite);
    if (o.json) {
        print_json({{"ppl", p.ppl},
                    {"stderr", p.stderr_ppl},
                    {"tokens", p.tokens},
                    {"rows", p.rows},
                    {"convention", o.convention},
                    {"nonfinite", p.nonfinite}});
        return;
    }
    print(fmt::format("perplexity  {:.4f} +- {:.4f}\n", p.ppl, p.stderr_ppl));
    print(fmt::format("scored      {} tokens in {} rows ({} convention)\n", p.tokens, p.rows,
                      o.convention));
    print(fmt::format("nonfinite   {}\n", p.nonfinite));
}

void eval_ppl(const PplOptions& o) {
    const bool gguf = o.convention == "gguf";
    const Checkpoint checkpoint = Checkpoint::open(o.model);
    const Tokenizer tokenizer = Tokenizer::load(o.model);
    EvalOptions options{.ctx = o.ctx > 0 ? o.ctx
                               : gguf    ? 512
                                         : 2048,
                        .rows = o.rows,
                        .vocab = tokenizer.vocab_size(),
                        .convention = gguf ? EvalConvention::gguf : EvalConvention::exl3,
                        .bos = bos_of(checkpoint, tokenizer),
                        .cancel = &stop_requested()};
    const auto text = read_text_tokens(tokenizer, o.text, options.convention);
    const Runtime runtime = open_runtime(o.device);
    const auto model = load_model(*runtime.stream, checkpoint);
    warn_beyond_positions(model->spec(), options.ctx);
    Progress progress("perplexity, positions");
    options.progress = [&](int64_t done, int64_t total) { progress.update(done, total); };
    report(o, perplexity(*model, *runtime.stream, text, options));
}

}  // namespace

void add_eval_ppl(Command& command) {
    auto& o = command.options<PplOptions>();
    add_model_flag(command, o.model);
    CLI::App& app = command.app;
    app.add_option("--text", o.text, "The text; -: stdin")->type_name("F")->required();
    app.add_option("--ctx", o.ctx, "Tokens in a row (default: 2048, gguf 512)")
        ->type_name("N")
        ->check(CLI::Range(2, 1 << 24));
    app.add_option("--rows", o.rows, "At most so many rows")
        ->type_name("N")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--convention", o.convention, "How rows are cut and scored")
        ->check(CLI::IsMember({"exl3", "gguf"}))
        ->capture_default_str();
    add_json_flag(command, o.json);
    add_device_flags(command, o.device);
    command.run([&o] { eval_ppl(o); });
}

}  // namespace exl3::cli
