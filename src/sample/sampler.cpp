#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/random.h"
#include "sample/exp.h"
#include "sample/steps.h"

namespace exl3 {
namespace {

// Noise that belongs to no token is drawn past the largest token id.
constexpr uint64_t kXtcRoll = uint64_t{1} << 32;
constexpr uint64_t kSkewRoll = kXtcRoll + 1;

bool mirostat(const SamplerParams& p) {
    return p.mirostat_mode != 0;
}

bool adaptive(const SamplerParams& p) {
    return p.adaptive_target >= 0 && p.adaptive_target < 1;
}

bool switched_on(SamplerStep step, const SamplerParams& p) {
    switch (step) {
        case SamplerStep::penalties:
            return p.repetition_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0;
        case SamplerStep::dry: return p.dry_multiplier > 0 && p.dry_range != 0;
        case SamplerStep::temperature:
            return p.temperature != 1 || p.smoothing_factor > 0 || p.max_temp > p.min_temp;
        default: break;
    }
    if (mirostat(p)) return false;
    switch (step) {
        case SamplerStep::top_n_sigma: return p.top_n_sigma > 0;
        case SamplerStep::top_k: return p.top_k > 0;
        case SamplerStep::typical: return p.typical < 1;
        case SamplerStep::tfs: return p.tfs < 1;
        case SamplerStep::top_a: return p.top_a > 0;
        case SamplerStep::top_p: return p.top_p < 1;
        case SamplerStep::min_p: return p.min_p > 0;
        case SamplerStep::xtc: return p.xtc_probability > 0;
        default: return true;
    }
}

// Copies logits into a fresh dense list and returns the largest: NaN becomes kNever, other values
// are clamped.
float copy_logits(std::span<const float> logits, Candidates& c) {
    c.dense = true;
    c.offset = 0;
    c.logit.resize(logits.size());
    const float limit = static_cast<float>(kLogitLimit);
    const F32x4 never = splat4(kNever);
    F32x4 most = never;
    size_t i = 0;
    for (; i + 4 <= logits.size(); i += 4) {
        const F32x4 l = load4(&logits[i]);
        const F32x4 low = l < splat4(-limit) ? splat4(-limit) : l;
        const F32x4 clamped = low > splat4(limit) ? splat4(limit) : low;
        const F32x4 clean = l > never ? clamped : never;  // NaN is not > anything
        most = max4(clean, most);
        store4(&c.logit[i], clean);
    }
    float result = std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
    for (; i < logits.size(); ++i) {
        c.logit[i] = logits[i] > kNever ? std::clamp(logits[i], -limit, limit) : kNever;
        result = std::max(result, c.logit[i]);
    }
    return result;
}

void forbid(Candidates& c, int32_t token) {
    const size_t i = c.find(token);
    if (i < c.size()) c.logit[i] = kNever;
}

void apply_mask(Candidates& c, const TokenMask& mask) {
    for (size_t first = 0; first < c.size(); first += 32) {
        const uint32_t word = first / 32 < mask.words.size() ? mask.words[first / 32] : 0;
        if (word == ~0u) continue;
        const size_t end = std::min(c.size(), first + 32);
        for (size_t i = first; i < end; ++i)
            if (!(word >> (i - first) & 1u)) c.logit[i] = kNever;
    }
}

void apply_bias(Candidates& c, const SamplerParams& p) {
    for (const auto& [token, bias] : p.logit_bias) {
        const size_t i = c.find(token);
        if (i == c.size() || c.logit[i] == kNever || std::isnan(bias)) continue;
        if (std::isinf(bias))
            c.logit[i] = bias < 0 ? kNever : c.logit[i];
        else
            c.logit[i] = static_cast<float>(c.logit[i] + bias);
    }
}

// Log-probabilities within c: of `token`, and the list of the n most likely.
void report_logprobs(Candidates& c, int n, SampleResult& result) {
    const double log_total = std::log(weigh(c));
    const double most = max_logit(c.logit);
    const auto logprob = [&](float l) { return static_cast<float>(l - most - log_total); };
    result.logprob = logprob(c.logit[c.find(result.token)]);
    if (n == 0) return;
    keep_top_k(c, n);
    compact(c);
    for (size_t i = 0; i < c.size(); ++i) result.top.push_back({c.id[i], logprob(c.logit[i])});
    std::sort(result.top.begin(), result.top.end(), [](const auto& a, const auto& b) {
        return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
    });
}

}  // namespace

std::string_view describe(SampleStatus status) {
    switch (status) {
        case SampleStatus::ok: return "";
        case SampleStatus::no_logits:
            return "the model's logits are all NaN or -inf: at least one finite logit is needed";
        case SampleStatus::all_banned:
            return "grammar, banned tokens, allowed tokens and logit bias leave no token to draw";
    }
    return "";
}

uint64_t choose_seed(const SamplerParams& params) {
    if (params.seed) return *params.seed;
    std::random_device device;
    return uint64_t{device()} << 32 | device();
}

Sampler::Sampler(SamplerParams params, std::shared_ptr<const SamplerVocab> vocab)
    : params_(std::move(params)), vocab_(std::move(vocab)) {
    if (auto error = check_params(params_, vocab_ ? vocab_->size : 0)) throw Error(*error);
    greedy_ = params_.temperature < 1e-5;
    std::vector<SamplerStep> order = default_order(params_.temperature_last);
    if (!params_.samplers.empty()) {
        order.clear();
        for (const std::string& name : params_.samplers) order.push_back(*step_from_name(name));
    }
    for (const SamplerStep step : order) {
        const bool changes_best = step == SamplerStep::penalties || step == SamplerStep::dry;
        if (switched_on(step, params_) && (changes_best || !greedy_)) steps_.push_back(step);
    }
    if (!params_.allowed_tokens.empty()) {
        const auto& ids = params_.allowed_tokens;
        allowed_ = TokenMask(*std::max_element(ids.begin(), ids.end()) + 1);
        for (const int32_t id : ids) allowed_.set(id);
    }
}

SamplerState Sampler::start(std::span<const int32_t> prompt, uint64_t seed) const {
    SamplerState state;
    state.seed = seed;
    state.history.assign(prompt.begin(), prompt.end());
    state.prompt_tokens = prompt.size();
    state.position = prompt.size();
    state.memory = start_memory(params_);
    return state;
}

SampleStatus Sampler::load(std::span<const float> logits, const SamplerState& state,
                           const TokenMask* allowed, Candidates& c) const {
    if (copy_logits(logits, c) == kNever) return SampleStatus::no_logits;
    const bool unconstrained = !allowed && params_.allowed_tokens.empty() &&
                               params_.banned_tokens.empty() && state.banned.empty() &&
                               params_.logit_bias.empty();
    if (unconstrained) return SampleStatus::ok;
    if (allowed) apply_mask(c, *allowed);
    if (!params_.allowed_tokens.empty()) apply_mask(c, allowed_);
    for (const int32_t token : params_.banned_tokens) forbid(c, token);
    for (const int32_t token : state.banned) forbid(c, token);
    apply_bias(c, params_);
    return max_logit(c.logit) == kNever ? SampleStatus::all_banned : SampleStatus::ok;
}

void Sampler::run(SamplerStep step, Candidates& c, const SamplerState& state) const {
    const SamplerParams& p = params_;
    switch (step) {
        case SamplerStep::penalties: return apply_penalties(c, p, state);
        case SamplerStep::dry: return apply_dry(c, p, state, vocab_.get());
        case SamplerStep::temperature: return apply_temperature(c, p);
        case SamplerStep::top_n_sigma: return keep_top_n_sigma(c, p.top_n_sigma);
        case SamplerStep::top_k: return keep_top_k(c, p.top_k);
        case SamplerStep::typical: return keep_typical(c, p.typical);
        case SamplerStep::tfs: return keep_tail_free(c, p.tfs);
        case SamplerStep::top_a: return keep_top_a(c, p.top_a);
        case SamplerStep::top_p: return keep_top_p(c, p.top_p);
        case SamplerStep::min_p: return keep_min_p(c, p.min_p);
        case SamplerStep::xtc: {
            const double roll = to_unit(noise64(state.seed, state.position, kXtcRoll));
            return apply_xtc(c, p, vocab_.get(), roll);
        }
    }
}

size_t Sampler::choose(Candidates& c, SamplerState& state, int vocab) const {
    SamplerMemory& memory = state.memory;
    if (greedy_) return best_entry(c);
    if (mirostat(params_)) {
        keep_mirostat(c, params_, memory, vocab);
        const size_t winner = draw(c, state.seed, state.position);
        const double total = weigh(c);
        update_mirostat(memory, params_, c.weight[winner] / total);
        return winner;
    }
    if (adaptive(params_)) {
        const double total = apply_adaptive(c, params_, memory);
        const size_t winner = draw(c, state.seed, state.position);
        update_adaptive(memory, params_, c.weight[winner] / total);
        return winner;
    }
    if (params_.skew != 0) {
        const double r = to_unit(noise64(state.seed, state.position, kSkewRoll));
        return draw_skewed(c, r, params_.skew);
    }
    return draw(c, state.seed, state.position);
}

SampleResult Sampler::sample(std::span<const float> logits, SamplerState& state,
                             const TokenMask* allowed) const {
    // Scratch of this thread; load() starts it afresh.
    static thread_local Candidates c;
    if (vocab_) logits = logits.first(std::min(logits.size(), static_cast<size_t>(vocab_->size)));
    SampleResult result;
    result.status = load(logits, state, allowed, c);
    if (result.status != SampleStatus::ok) return result;

    for (const SamplerStep step : steps_) run(step, c, state);
    const size_t winner = choose(c, state, static_cast<int>(logits.size()));
    result.token = c.id_at(winner);
    result.probability = 1;
    if (!greedy_ && c.size() > 1) {
        const double total = weigh(c);
        result.probability = static_cast<float>(c.weight[winner] / total);
    }
    if (params_.logprobs >= 0) {
        if (params_.logprob_mode == LogprobMode::raw) copy_logits(logits, c);
        report_logprobs(c, params_.logprobs, result);
    }
    return result;
}

}  // namespace exl3
