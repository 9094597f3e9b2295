#include "server/loaded_model.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "arch/arch.h"
#include "base/log.h"
#include "exl3_version.h"
#include "io/checkpoint.h"

namespace exl3::server {
namespace {

constexpr int64_t kLeastCache = 8192, kDefaultCache = 32768;

int64_t now_seconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

// What the options mean for a model made for `trained` tokens.
GeneratorOptions generator_options(const ServerConfig& config, int64_t trained) {
    GeneratorOptions o;
    const int64_t wanted = config.model.max_seq_len > 0 ? config.model.max_seq_len : trained;
    o.cache_tokens = config.model.cache_size;
    if (o.cache_tokens == 0) {
        o.cache_tokens = config.model.max_seq_len > 0 ? wanted : std::min(wanted, kDefaultCache);
        o.cache_tokens = std::max(o.cache_tokens, kLeastCache);
    }
    o.max_context = std::min(wanted > 0 ? wanted : o.cache_tokens, o.cache_tokens);
    o.max_jobs = config.model.max_batch_size;
    o.max_waiting = config.network.max_queue;
    o.chunk = config.model.chunk_size;
    o.step_tokens = std::max(o.step_tokens, o.chunk);
    if (trained > 0 && o.max_context > trained)
        log(LogLevel::warn, "max_seq_len: {} tokens are more than the {} the model was made for",
            o.max_context, trained);
    return o;
}

void override_syntax(const ServerConfig::Model& config, api::OutputSyntax& syntax) {
    if (!config.reasoning) syntax.think_open = syntax.think_close = "";
    if (config.reasoning && !config.reasoning_start_token.empty()) {
        syntax.think_open = config.reasoning_start_token;
        syntax.think_close = config.reasoning_end_token;
    }
    syntax.tools_in_reasoning = config.tool_calls_in_reasoning;
    if (config.tool_format.empty()) return;
    syntax.harmony = config.tool_format == "harmony";
    if (syntax.harmony) return;
    syntax.tools = api::find_tool_format(config.tool_format);
    if (!syntax.tools)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("model.tool_format: found '{}', needed {}", config.tool_format,
                                fmt::join(api::tool_format_names(), ", ")));
}

}  // namespace

std::pair<int, int> read_cache_mode(const std::string& text) {
    if (text == "FP16" || text == "fp16") return {16, 16};
    const auto fail = [&]() -> Error {
        return {Errc::invalid_argument,
                {},
                fmt::format("cache_mode: found '{}', needed FP16, Q8, Q6, Q4 or 'K,V' with 2 to 8 "
                            "bits each",
                            text)};
    };
    const auto number = [&](std::string_view part) {
        int bits = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), bits);
        if (error != std::errc() || end != part.data() + part.size() ||
            (bits != 16 && (bits < 2 || bits > 8)))
            throw fail();
        return bits;
    };
    std::string_view rest = text;
    if (rest.starts_with('Q') || rest.starts_with('q')) rest.remove_prefix(1);
    const size_t comma = rest.find(',');
    const int keys = number(rest.substr(0, comma));
    return {keys, comma == std::string_view::npos ? keys : number(rest.substr(comma + 1))};
}

LoadedModel::LoadedModel(const std::filesystem::path& model_folder, const std::string& device_name,
                         const DeviceOptions& device_options, const ServerConfig& config,
                         const LoadProgress& progress)
    : folder(model_folder),
      created(now_seconds()),
      device(open_device(device_name, device_options).value()),
      tokenizer(Tokenizer::load(folder)),
      templates(ChatTemplates::load(folder, config.model.prompt_template).value()),
      traits(api::probe_templates(templates, tokenizer)),
      sampler_vocab(exl3::sampler_vocab(tokenizer)) {
    const auto start = std::chrono::steady_clock::now();
    id = std::filesystem::weakly_canonical(folder).filename().string();
    start_in_reasoning = config.model.start_in_reasoning;
    override_syntax(config.model, traits.output);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    ends = end_tokens(checkpoint.config(), checkpoint.generation_config(), tokenizer);
    constraints = std::make_unique<Constraints>(tokenizer, ends);
    sampler = config.sampling.defaults == "model" ? default_params(checkpoint.generation_config())
                                                  : SamplerParams{};
    {
        const auto stream = device->make_stream();
        model = std::make_shared<const Model>(*stream, checkpoint, describe(checkpoint), progress);
    }
    GeneratorOptions options = generator_options(config, model->spec().max_positions);
    const auto [key_bits, value_bits] = read_cache_mode(config.model.cache_mode);
    options.kv_bits = {key_bits, value_bits};
    cache_tokens = options.cache_tokens;
    generator = std::make_unique<Generator>(model, tokenizer, *device, options);
    fingerprint = fmt::format("exl3-{}-{}", EXL3_VERSION, id);
    load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool LoadedModel::starts_in_reasoning(std::string_view prompt,
                                      const api::OutputSyntax& syntax) const {
    if (syntax.think_open.empty() || start_in_reasoning == "never") return false;
    return start_in_reasoning == "always" || api::ends_in_reasoning(prompt, syntax);
}

}  // namespace exl3::server
