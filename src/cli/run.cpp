// Streams a completion of a text.
#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/constraint_flags.h"
#include "cli/input.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/sampler_flags.h"
#include "cli/signals.h"
#include "gen/complete.h"
#include "gen/conversation.h"
#include "gen/model_defaults.h"

namespace exl3::cli {
namespace {

struct RunOptions {
    std::string model, prompt;
    int64_t new_tokens = 128;
    bool raw = false, json = false, ignore_eos = false, keep_special = false;
    std::vector<std::string> stop;
    SamplerFlags sampler;
    KvBits kv_bits;
    ConstraintFlags constraint;
    DeviceFlags device;
};

void report(const RunOptions& o, const Completion& c) {
    if (o.json) {
        print_json({{"text", c.text},
                    {"prompt_tokens", c.prompt_tokens},
                    {"new_tokens", c.new_tokens},
                    {"stop_reason", std::string(name_of(c.end))},
                    {"prefill_tps", c.prefill_tps()},
                    {"decode_tps", c.decode_tps()}});
        return;
    }
    if (::isatty(STDOUT_FILENO) == 1) print("\n");
    log(LogLevel::info, "prompt {} tokens, {:.1f} tokens/s; new {} tokens, {:.1f} tokens/s; {}",
        c.prompt_tokens, c.prefill_tps(), c.new_tokens, c.decode_tps(), name_of(c.end));
}

// The text as a chat's first message where the model has a template, unless --raw.
std::vector<int32_t> read_prompt(const RunOptions& o, const Tokenizer& tokenizer,
                                 const std::string& text) {
    if (o.raw) return tokenizer.encode_prompt(text);
    const ChatTemplates templates = ChatTemplates::load(o.model).value();
    if (templates.empty()) return tokenizer.encode_prompt(text);
    Conversation conversation;
    conversation.add_user(text);
    return encode_rendered(tokenizer, conversation.prompt(templates));
}

void run(const RunOptions& o) {
    const std::string text = o.prompt == "-" ? read_input("-") : o.prompt;
    const Checkpoint checkpoint = Checkpoint::open(o.model);
    const Tokenizer tokenizer = Tokenizer::load(o.model);
    const Sampler sampler(
        o.sampler.apply(default_params(checkpoint.generation_config()), tokenizer.vocab_size()),
        sampler_vocab(tokenizer));
    CompletionRequest request{.prompt = read_prompt(o, tokenizer, text),
                              .max_new_tokens = o.new_tokens,
                              .stop = {.strings = o.stop},
                              .keep_special = o.keep_special,
                              .seed = choose_seed(sampler.params()),
                              .kv_bits = o.kv_bits,
                              .cancel = &stop_requested()};
    if (!o.ignore_eos)
        request.stop.tokens =
            end_tokens(checkpoint.config(), checkpoint.generation_config(), tokenizer);
    request.constraint = o.constraint.make(
        tokenizer, end_tokens(checkpoint.config(), checkpoint.generation_config(), tokenizer));
    if (request.prompt.empty())
        throw Error(Errc::invalid_argument, {},
                    "-p: found a prompt without tokens, needed at least one");
    const Runtime runtime = open_runtime(o.device);
    const auto model = load_model(*runtime.stream, checkpoint);
    warn_beyond_positions(model->spec(),
                          static_cast<int64_t>(request.prompt.size()) + o.new_tokens);
    const Completion c =
        complete(*model, tokenizer, *runtime.stream, sampler, request, [&](std::string_view piece) {
            if (!o.json) print(piece);
        });
    check_stop();
    report(o, c);
}

}  // namespace

void add_run(Command& command) {
    auto& o = command.options<RunOptions>();
    add_model_flag(command, o.model);
    CLI::App& app = command.app;
    app.add_option("-p,--prompt", o.prompt, "What to continue; -: stdin")
        ->type_name("TEXT")
        ->required();
    app.add_option("-n,--new-tokens", o.new_tokens,
                   "New tokens, exactly, unless a stop comes first")
        ->type_name("N")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 24))
        ->capture_default_str();
    app.add_flag("--raw", o.raw, "Feed the text as it is, without the chat template");
    app.add_option("--stop", o.stop, "End before this text; may be repeated")
        ->type_name("S")
        ->allow_extra_args(false);
    app.add_flag("--ignore-eos", o.ignore_eos, "End tokens do not end the text");
    app.add_flag("--keep-special", o.keep_special, "Show special tokens in the text");
    add_sampler_flags(command, o.sampler);
    add_constraint_flags(command, o.constraint);
    add_kv_bits_flag(command, o.kv_bits);
    add_json_flag(command, o.json);
    add_device_flags(command, o.device);
    command.run([&o] { run(o); });
}

}  // namespace exl3::cli
