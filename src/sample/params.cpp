#include "sample/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace exl3 {
namespace {

using P = SamplerParams;

struct StepNames {
    SamplerStep step;
    std::string_view name;
    std::string_view alias;
};

constexpr StepNames kSteps[] = {
    {SamplerStep::penalties, "penalties", "repetition_penalty"},
    {SamplerStep::dry, "dry", "dry"},
    {SamplerStep::temperature, "temperature", "temp"},
    {SamplerStep::top_n_sigma, "top_n_sigma", "top_nsigma"},
    {SamplerStep::top_k, "top_k", "top_k"},
    {SamplerStep::typical, "typical", "typ_p"},
    {SamplerStep::tfs, "tfs", "tfs_z"},
    {SamplerStep::top_a, "top_a", "top_a"},
    {SamplerStep::top_p, "top_p", "top_p"},
    {SamplerStep::min_p, "min_p", "min_p"},
    {SamplerStep::xtc, "xtc", "xtc"},
};

constexpr double kTokens = 2147483647;  // ranges in tokens have no natural upper limit

// One knob per line: name, aliases, field, least, greatest, least excluded, description.
const ParamInfo kTable[] = {
    // clang-format off
    {"temperature", "", &P::temperature, 0, 10, false, "randomness; 0 always takes the most likely token"},
    {"temperature_last", "", &P::temperature_last, 0, 0, false, "apply the temperature after truncation"},
    {"smoothing_factor", "", &P::smoothing_factor, 0, 100, false, "quadratic smoothing of the logits; 0 is off"},
    {"smoothing_curve", "", &P::smoothing_curve, 0, 100, false, "cubic share of the smoothing; 1 is purely quadratic"},
    {"min_temp", "dynatemp_low", &P::min_temp, 0, 10, false, "dynamic temperature when the model is certain"},
    {"max_temp", "dynatemp_high", &P::max_temp, 0, 10, false, "dynamic temperature when the model is undecided; not above min_temp: off"},
    {"temp_exponent", "dynatemp_exponent", &P::temp_exponent, 0, 100, true, "how dynamic temperature follows the entropy"},
    {"top_k", "", &P::top_k, -1, kTokens, false, "keep the k most likely tokens; 0 or -1 is off"},
    {"top_p", "", &P::top_p, 0, 1, false, "keep the fewest most likely tokens that reach this mass; 1 is off"},
    {"min_p", "", &P::min_p, 0, 1, false, "keep tokens at least this likely relative to the best; 0 is off"},
    {"top_a", "", &P::top_a, 0, 1, false, "keep tokens above this times the best probability squared; 0 is off"},
    {"typical", "typical_p typ_p", &P::typical, 0, 1, false, "keep this mass of the most typical tokens; 1 is off"},
    {"tfs", "tfs_z", &P::tfs, 0, 1, false, "tail-free sampling; 1 is off"},
    {"top_n_sigma", "nsigma", &P::top_n_sigma, -1, 1000, false, "keep logits within n standard deviations of the best; 0 or less is off"},
    {"xtc_probability", "", &P::xtc_probability, 0, 1, false, "chance to exclude top choices; 0 is off"},
    {"xtc_threshold", "", &P::xtc_threshold, 0, 1, false, "probability from which a token is a top choice"},
    {"xtc_random", "", &P::xtc_random, 0, 0, false, "roll for XTC at each token instead of using its expectation"},
    {"repetition_penalty", "rep_pen repeat_penalty", &P::repetition_penalty, 0, 100, true, "divide the logits of seen tokens; 1 is off, below 1 encourages"},
    {"presence_penalty", "", &P::presence_penalty, -2, 2, false, "subtract from the logits of tokens seen in the output"},
    {"frequency_penalty", "", &P::frequency_penalty, -2, 2, false, "subtract per occurrence in the output"},
    {"penalty_range", "repetition_range repetition_penalty_range rep_pen_range repeat_last_n", &P::penalty_range, -1, kTokens, false, "tokens the penalties look back over; -1 all, 0 none"},
    {"repetition_decay", "", &P::repetition_decay, 0, kTokens, false, "tokens beyond the range over which penalties fade"},
    {"penalize_prompt", "", &P::penalize_prompt, 0, 0, false, "presence and frequency penalties count the prompt too"},
    {"dry_multiplier", "", &P::dry_multiplier, 0, 100, false, "strength of the penalty on repeated phrases; 0 is off"},
    {"dry_base", "", &P::dry_base, 1, 100, false, "growth of that penalty per token of the phrase"},
    {"dry_allowed_length", "", &P::dry_allowed_length, 0, kTokens, false, "phrase length from which it applies"},
    {"dry_range", "dry_penalty_last_n", &P::dry_range, -1, kTokens, false, "tokens DRY looks back over; -1 all, 0 is off"},
    {"dry_sequence_breakers", "", &P::dry_sequence_breakers, 0, 0, false, "texts that end a phrase"},
    {"mirostat_mode", "mirostat", &P::mirostat_mode, 0, 2, false, "1 or 2: hold the surprise constant instead of truncating; 0 is off"},
    {"mirostat_tau", "", &P::mirostat_tau, 0, 100, false, "surprise mirostat aims at, in bits"},
    {"mirostat_eta", "", &P::mirostat_eta, 0, 10, false, "how fast mirostat corrects itself"},
    {"adaptive_target", "", &P::adaptive_target, -1, 1, false, "probability that adaptive-p favours; 1 or negative is off"},
    {"adaptive_decay", "", &P::adaptive_decay, 0, 1, false, "how long adaptive-p remembers"},
    {"skew", "", &P::skew, -100, 100, false, "bend the final draw; 0 is off"},
    {"banned_tokens", "custom_token_bans", &P::banned_tokens, 0, 0, false, "token ids never drawn"},
    {"allowed_tokens", "allowed_token_ids", &P::allowed_tokens, 0, 0, false, "the only token ids drawn; empty allows all"},
    {"samplers", "", &P::samplers, 0, 0, false, "order of the sampler steps, by name; a step left out is skipped"},
    {"seed", "", &P::seed, 0, 0, false, "same seed, same text; absent: random"},
    {"logprobs", "", &P::logprobs, -1, 1000, false, "report log-probabilities of this many tokens; -1 none"},
    // clang-format on
};

Error bad(std::string_view name, std::string_view found, std::string_view allowed) {
    return {Errc::invalid_argument,
            {},
            fmt::format("sampling: {}: found {}: allowed {}", name, found, allowed)};
}

std::string range_text(const ParamInfo& info) {
    if (info.max == kTokens) return fmt::format("{} or more", info.min);
    return fmt::format("{} {} to {}", info.min_excluded ? "above" : "from", info.min, info.max);
}

std::optional<Error> check_range(const SamplerParams& p, const ParamInfo& info) {
    double value = 0;
    if (const auto* real = std::get_if<double P::*>(&info.field))
        value = p.**real;
    else if (const auto* whole = std::get_if<int P::*>(&info.field))
        value = p.**whole;
    else
        return {};
    // Written so that NaN fails.
    const bool above = info.min_excluded ? value > info.min : value >= info.min;
    if (above && value <= info.max) return {};
    return bad(info.name, fmt::format("{}", value), range_text(info));
}

std::optional<Error> check_ids(std::string_view name, std::span<const int32_t> ids, int vocab) {
    for (const int32_t id : ids)
        if (id < 0 || (vocab > 0 && id >= vocab))
            return bad(name, fmt::format("token {}", id),
                       vocab > 0 ? fmt::format("0 to {}", vocab - 1) : "0 or more");
    return {};
}

std::optional<Error> check_bias(const SamplerParams& p, int vocab) {
    for (const auto& [id, bias] : p.logit_bias) {
        if (auto e = check_ids("logit_bias", std::array{id}, vocab)) return e;
        // What is not finite bans (-inf) or is ignored; neither can come from JSON.
        if (std::isfinite(bias) && std::abs(bias) > 100)
            return bad("logit_bias", fmt::format("{} for token {}", bias, id), "from -100 to 100");
    }
    return {};
}

}  // namespace

std::string_view step_name(SamplerStep step) {
    return kSteps[static_cast<size_t>(step)].name;
}

std::optional<SamplerStep> step_from_name(std::string_view name) {
    if (name == "typical_p") return SamplerStep::typical;
    for (const StepNames& s : kSteps)
        if (name == s.name || name == s.alias) return s.step;
    return {};
}

std::vector<SamplerStep> default_order(bool temperature_last) {
    using S = SamplerStep;
    if (temperature_last)
        return {S::penalties, S::dry,   S::top_n_sigma, S::top_k,       S::typical, S::tfs,
                S::top_a,     S::top_p, S::min_p,       S::temperature, S::xtc};
    return {S::penalties, S::dry,   S::temperature, S::top_n_sigma, S::top_k, S::typical,
            S::tfs,       S::top_a, S::top_p,       S::min_p,       S::xtc};
}

SamplerParams recommended_params() {
    return {.temperature = 0.8, .temperature_last = true, .min_p = 0.08};
}

std::span<const ParamInfo> sampler_param_table() {
    return kTable;
}

std::optional<Error> check_params(const SamplerParams& params, int vocab) {
    for (const ParamInfo& info : kTable)
        if (auto e = check_range(params, info)) return e;
    if (auto e = check_ids("banned_tokens", params.banned_tokens, vocab)) return e;
    if (auto e = check_ids("allowed_tokens", params.allowed_tokens, vocab)) return e;
    if (auto e = check_bias(params, vocab)) return e;
    std::vector<std::string_view> seen;
    for (const std::string& name : params.samplers) {
        const auto step = step_from_name(name);
        if (!step) {
            std::string names;
            for (const StepNames& s : kSteps)
                names.append(names.empty() ? "" : ", ").append(s.name);
            return bad("samplers", fmt::format("'{}'", name), names);
        }
        if (std::find(seen.begin(), seen.end(), step_name(*step)) != seen.end())
            return bad("samplers", fmt::format("'{}' twice", name), "each step once");
        seen.push_back(step_name(*step));
    }
    return {};
}

}  // namespace exl3
