#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sample/candidates.h"
#include "sample/params.h"
#include "sample/state.h"
#include "sample/token_mask.h"

namespace exl3 {

/// Why there is no token; the job ends with an error, the engine goes on.
enum class SampleStatus {
    ok,
    no_logits,  ///< every logit of the vocabulary is NaN or -inf, or there are none
    all_banned  ///< the mask, the bans or the bias leave no token
};
/// A sentence for the job's error message; empty for ok.
std::string_view describe(SampleStatus status);

struct TokenLogprob {
    int32_t token = -1;
    float logprob = 0;  ///< natural logarithm
};

struct SampleResult {
    SampleStatus status = SampleStatus::ok;
    int32_t token = -1;             ///< -1 unless status is ok
    float probability = 0;          ///< chance with which it was drawn; 1 if greedy
    float logprob = 0;              ///< of `token`, if SamplerParams::logprobs >= 0
    std::vector<TokenLogprob> top;  ///< the most likely tokens, best first, ties by lower id
};

/// Parameters compiled to a chain of steps. Immutable and shared by threads; what changes from
/// token to token is in the SamplerState.
///
/// The chain: allowed tokens and grammar mask, bans, logit bias; the steps in order
/// (default_order() or params.samplers); then one of mirostat, adaptive-p, skew or the plain draw,
/// the first that is on. Temperature 0 takes the most likely token after masks, bias, penalties and
/// DRY. Mirostat replaces truncation and XTC.
///
/// NaN counts as -inf; infinite and huge logits as +-1e30, so +inf wins against every ordinary one.
class Sampler {
public:
    /// Throws the Error of check_params(). Without `vocab` every logit belongs to a token, XTC
    /// spares none and DRY knows no breakers.
    explicit Sampler(SamplerParams params, std::shared_ptr<const SamplerVocab> vocab = nullptr);

    /// The state of a sequence that so far is its prompt.
    SamplerState start(std::span<const int32_t> prompt, uint64_t seed) const;

    /// Draws the token that follows state.history.
    /// @param logits   (vocabulary or more) f32, as the model gave them; what lies past the
    ///                 tokenizer's vocabulary is padding and never drawn
    /// @param state    its `memory` is updated; the caller accept()s the token
    /// @param allowed  grammar mask, or null for no constraint
    SampleResult sample(std::span<const float> logits, SamplerState& state,
                        const TokenMask* allowed = nullptr) const;

    const SamplerParams& params() const { return params_; }

private:
    SampleStatus load(std::span<const float> logits, const SamplerState& state,
                      const TokenMask* allowed, Candidates& c) const;
    void run(SamplerStep step, Candidates& c, const SamplerState& state) const;
    /// Makes the draw and tells the memory about it; returns the entry. `vocab` in tokens.
    size_t choose(Candidates& c, SamplerState& state, int vocab) const;

    SamplerParams params_;
    std::shared_ptr<const SamplerVocab> vocab_;
    std::vector<SamplerStep> steps_;  ///< those that are switched on
    TokenMask allowed_;               ///< params.allowed_tokens; unused if that is empty
    bool greedy_ = false;
};

/// params.seed, or a fresh one from the operating system.
uint64_t choose_seed(const SamplerParams& params);

}  // namespace exl3
