#include "cli/sampler_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace exl3::cli {
namespace {

constexpr const char* kGroup = "Sampling";

std::string flag_name(std::string_view knob) {
    std::string name = "--" + std::string(knob);
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

/// Declares the flag of one knob; the overload is chosen by the type of its field.
struct Declare {
    CLI::App& app;
    SamplerFlags& flags;
    const ParamInfo& knob;

    template <typename T>
    void operator()(T SamplerParams::*field) const {
        const auto keep = [&f = flags, field](const T& value) {
            f.given.emplace_back([=](SamplerParams& p) { p.*field = value; });
        };
        CLI::Option* o =
            app.add_option_function<T>(flag_name(knob.name), keep, std::string(knob.description));
        o->group(kGroup);
        if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int>)
            o->type_name("N");
        else
            o->type_name("LIST")->delimiter(',')->allow_extra_args(false);
    }
    void operator()(bool SamplerParams::*field) const {
        const auto keep = [&f = flags, field](int64_t) {
            f.given.emplace_back([=](SamplerParams& p) { p.*field = true; });
        };
        app.add_flag_function(flag_name(knob.name), keep, std::string(knob.description))
            ->group(kGroup);
    }
    // Any 64-bit number is a seed; -1 asks for a random one, as in the HTTP interface.
    void operator()(std::optional<uint64_t> SamplerParams::*field) const {
        const auto keep = [&f = flags, field](const int64_t& value) {
            f.given.emplace_back([=](SamplerParams& p) {
                p.*field = value == -1 ? std::nullopt : std::optional(static_cast<uint64_t>(value));
            });
        };
        app.add_option_function<int64_t>(flag_name(knob.name), keep, std::string(knob.description))
            ->type_name("N")
            ->group(kGroup);
    }
};

// "ID=BIAS" or "ID:BIAS"; -inf bans.
bool parse_bias(const std::string& text, std::pair<int32_t, double>& bias) {
    const size_t mid = text.find_first_of("=:");
    if (mid == std::string::npos) return false;
    const char* begin = text.data();
    const auto id = std::from_chars(begin, begin + mid, bias.first);
    const auto value = std::from_chars(begin + mid + 1, begin + text.size(), bias.second);
    return id.ec == std::errc() && id.ptr == begin + mid && value.ec == std::errc() &&
           value.ptr == begin + text.size();
}

void add_bias_flag(CLI::App& app, SamplerFlags& flags) {
    const auto keep = [&flags](const std::string& text) {
        std::pair<int32_t, double> bias;
        if (!parse_bias(text, bias))
            throw CLI::ValidationError("--logit-bias", "found '" + text + "', needed ID=BIAS");
        flags.given.emplace_back([bias](SamplerParams& p) { p.logit_bias.push_back(bias); });
    };
    app.add_option_function<std::vector<std::string>>(
           "--logit-bias",
           [keep](const std::vector<std::string>& all) {
               for (const std::string& text : all) keep(text);
           },
           "Add to the logit of a token; may be repeated")
        ->type_name("ID=BIAS")
        ->allow_extra_args(false)
        ->group(kGroup);
}

}  // namespace

SamplerParams SamplerFlags::apply(SamplerParams params, int vocab) const {
    for (const auto& set : given) set(params);
    if (greedy) params.temperature = 0;
    if (auto problem = check_params(params, vocab)) throw *problem;
    return params;
}

void add_sampler_flags(Command& command, SamplerFlags& flags) {
    command.app.add_flag("--greedy", flags.greedy, "Always take the most likely token")
        ->group(kGroup);
    for (const ParamInfo& knob : sampler_param_table())
        if (knob.name != "logprobs") std::visit(Declare{command.app, flags, knob}, knob.field);
    add_bias_flag(command.app, flags);
}

}  // namespace exl3::cli
