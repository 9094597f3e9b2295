#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace exl3 {

/// One link of the sampler chain. Masks, bans and the logit bias always come first, and the draw
/// (plain, skewed, mirostat or adaptive-p) always comes last; neither is listed in an order.
enum class SamplerStep {
    penalties,    ///< repetition, presence and frequency
    dry,          ///< repetition of whole phrases
    temperature,  ///< smoothing, then fixed or dynamic temperature
    top_n_sigma,
    top_k,
    typical,
    tfs,
    top_a,
    top_p,
    min_p,
    xtc
};

/// The name of a step in a `samplers` list, such as "top_k".
std::string_view step_name(SamplerStep step);
/// The step of that name; understands the spellings of other programs ("typ_p", "tfs_z").
std::optional<SamplerStep> step_from_name(std::string_view name);
/// penalties, dry, temperature, top_n_sigma, top_k, typical, tfs, top_a, top_p, min_p, xtc; with
/// `temperature_last` the temperature stands between min_p and xtc.
std::vector<SamplerStep> default_order(bool temperature_last);

/// Which distribution the reported log-probabilities describe.
enum class LogprobMode {
    raw,       ///< what the model said: before masks, bias, penalties and truncation, temperature 1
    processed  ///< what was drawn from; with temperature 0, after masks, bias and penalties
};

/// Every knob of the sampler. The defaults are neutral: they leave the model's own distribution as
/// it is. Real knobs are doubles so that they are compared exactly as the user wrote them.
/// Below, l is a token's logit, p its probability among the tokens that are left at that step.
struct SamplerParams {
    double temperature = 1;         ///< l / temperature; 0 takes the most likely token, always
    bool temperature_last = false;  ///< scale after the truncation steps instead of before
    double smoothing_factor = 0;    ///< s: l = max - s k d^2 + s j d^3 with d = l - max; 0 is off
    double smoothing_curve = 1;     ///< c: k = (3 - c) / 2 and j = (c - 1) / 2
    double min_temp = 1;            ///< dynamic temperature, on if max_temp > min_temp and then
    double max_temp = 1;            ///< instead of `temperature`: min + (max - min) (H / ln N)^e,
    double temp_exponent = 1;       ///< H the entropy of the N tokens left

    int top_k = 0;           ///< keep the k most likely; 0 or -1 is off
    double top_p = 1;        ///< keep the fewest tokens whose mass reaches p; 1 is off
    double min_p = 0;        ///< keep p >= min_p * max p
    double top_a = 0;        ///< keep p >= top_a * (max p)^2
    double typical = 1;      ///< keep the mass whose surprise is nearest to the entropy; 1 is off
    double tfs = 1;          ///< tail-free sampling, cut by the curvature of sorted p; 1 is off
    double top_n_sigma = 0;  ///< keep l >= max - n * standard deviation; 0 or less is off

    double xtc_probability = 0;  ///< how often all likely tokens but the last are dropped
    double xtc_threshold = 0.1;  ///< what counts as likely; above 0.5 nothing can happen
    bool xtc_random = false;     ///< roll the dice instead of scaling by the expectation

    double repetition_penalty = 1;  ///< l / r if l > 0 else l * r for tokens seen before
    double presence_penalty = 0;    ///< subtracted once from a token seen before; may be negative
    double frequency_penalty = 0;   ///< subtracted per occurrence; may be negative
    int penalty_range = -1;         ///< tokens looked back over at full strength; -1 all, 0 none
    int repetition_decay = 0;       ///< tokens over which the strength then falls to 0
    bool penalize_prompt = false;   ///< presence and frequency also count prompt tokens

    double dry_multiplier = 0;   ///< m: l -= m * b^(n - a) if the token would extend a repeated
    double dry_base = 1.75;      ///< b: phrase of n >= a tokens; m = 0 is off
    int dry_allowed_length = 2;  ///< a
    int dry_range = -1;          ///< tokens looked back over; -1 all, 0 is off
    std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};  ///< end a phrase

    int mirostat_mode = 0;        ///< 1 or 2: hold the surprise at tau; replaces truncation and XTC
    double mirostat_tau = 1.5;    ///< target surprise in bits
    double mirostat_eta = 0.3;    ///< learning rate
    double adaptive_target = 1;   ///< adaptive-p: favoured probability; 1 or negative is off
    double adaptive_decay = 0.9;  ///< memory of adaptive-p
    double skew = 0;              ///< draw r^exp(-skew) along the descending distribution

    std::vector<std::pair<int32_t, double>> logit_bias;  ///< added to l; -inf bans
    std::vector<int32_t> banned_tokens;
    std::vector<int32_t> allowed_tokens;  ///< empty: all
    std::vector<std::string> samplers;    ///< order of steps by name; empty: default_order()
    std::optional<uint64_t> seed;         ///< absent: random
    int logprobs = -1;  ///< -1: none; n >= 0: the drawn token's and those of the n most likely
    LogprobMode logprob_mode = LogprobMode::raw;
};

/// The library's recommendation for chat when neither the request, a preset nor the model says
/// otherwise: min-p 0.08, then temperature 0.8.
SamplerParams recommended_params();

/// A knob that is one number, switch or list, as command line and HTTP server need it: both
/// generate their flags and fields from the table, and check_params() takes its limits from it.
struct ParamInfo {
    using Field = std::variant<double SamplerParams::*, int SamplerParams::*, bool SamplerParams::*,
                               std::vector<int32_t> SamplerParams::*,
                               std::vector<std::string> SamplerParams::*,
                               std::optional<uint64_t> SamplerParams::*>;
    std::string_view name;     ///< as in JSON; a flag replaces "_" by "-"
    std::string_view aliases;  ///< other JSON names, separated by spaces
    Field field;
    double min = 0;  ///< allowed range of a double or an int
    double max = 0;
    bool min_excluded = false;  ///< min itself is not allowed
    std::string_view description;
};

/// All knobs but logit_bias and logprob_mode, which have shapes of their own.
std::span<const ParamInfo> sampler_param_table();

/// Nothing, or what is wrong: the knob, its value and what is allowed (Errc::invalid_argument).
/// With `vocab` > 0 token ids are compared with it as well.
std::optional<Error> check_params(const SamplerParams& params, int vocab = 0);

}  // namespace exl3
