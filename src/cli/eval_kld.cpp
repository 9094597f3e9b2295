// exl3 eval kld
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "cli/eval.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"

namespace exl3::cli {
namespace {

struct KldOptions {
    std::string model, ref, text;
    int ctx = 2048, rows = 20;
    KvBits kv_bits;
    bool json = false;
    DeviceFlags device;
};

void report(const KldOptions& o, const Divergence& d) {
    if (d.nonfinite > 0)
        log(LogLevel::warn, "{} positions had logits that are not finite and were left out",
            d.nonfinite);
    if (o.json) {
        print_json({{"mean", d.mean},
                    {"stderr", d.stderr_mean},
                    {"median", d.median},
                    {"p90", d.p90},
                    {"p99", d.p99},
                    {"top1", d.top1},
                    {"ppl", d.ppl},
                    {"ppl_ref", d.ppl_ref},
                    {"tokens", d.tokens},
                    {"noise_floor", d.noise_floor},
                    {"nonfinite", d.nonfinite}});
        return;
    }
    print(fmt::format("KL divergence  {:.6f} +- {:.6f} nats (noise floor {:.2g})\n", d.mean,
                      d.stderr_mean, d.noise_floor));
    print(fmt::format("quantiles      median {:.6f}, 90 % {:.6f}, 99 % {:.6f}\n", d.median, d.p90,
                      d.p99));
    print(fmt::format("same top token {:.3f} %\n", 100 * d.top1));
    print(fmt::format("perplexity     {:.4f}, reference {:.4f}\n", d.ppl, d.ppl_ref));
    print(fmt::format("positions      {} ({} not finite)\n", d.tokens, d.nonfinite));
}

// Two files of one vocabulary may still disagree about what an id means. A reference without a
// tokenizer of its own is taken at its word.
void require_same_tokens(const Tokenizer& ours, const KldOptions& o) {
    if (!std::filesystem::exists(std::filesystem::path(o.ref) / "tokenizer.json")) return;
    const Tokenizer theirs = Tokenizer::load(o.ref);
    for (int32_t id = 0; id < std::min(ours.vocab_size(), theirs.vocab_size()); ++id) {
        const std::string a = ours.token_of(id), b = theirs.token_of(id);
        if (a != b && !a.empty() && !b.empty())
            throw Error(
                Errc::invalid_argument, {o.ref, {}, {}},
                fmt::format("token {}: found '{}', needed '{}' as in {}", id, b, a, o.model));
    }
}

void eval_kld(const KldOptions& o) {
    const Checkpoint checkpoint = Checkpoint::open(o.model), ref = Checkpoint::open(o.ref);
    const Tokenizer tokenizer = Tokenizer::load(o.model);
    require_same_tokens(tokenizer, o);
    EvalOptions options{.ctx = o.ctx,
                        .rows = o.rows,
                        .vocab = tokenizer.vocab_size(),
                        .kv_bits = o.kv_bits,
                        .cancel = &stop_requested()};
    const auto text = read_text_tokens(tokenizer, o.text, options.convention);
    const Runtime runtime = open_runtime(o.device);
    const auto model = load_model(*runtime.stream, checkpoint);
    const auto reference = load_model(*runtime.stream, ref);
    warn_beyond_positions(model->spec(), options.ctx);
    Progress progress("divergence, positions");
    options.progress = [&](int64_t done, int64_t total) { progress.update(done, total); };
    report(o, divergence(*model, *reference, *runtime.stream, text, options));
}

}  // namespace

void add_eval_kld(Command& command) {
    auto& o = command.options<KldOptions>();
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
    add_kv_bits_flag(command, o.kv_bits);
    add_json_flag(command, o.json);
    add_device_flags(command, o.device);
    command.run([&o] { eval_kld(o); });
}

}  // namespace exl3::cli
