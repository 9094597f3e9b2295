#pragma once
#include <span>

#include "sample/candidates.h"
#include "sample/params.h"
#include "sample/state.h"

// The steps of the sampler chain. Each takes what the steps before it left and leaves at least one
// token; probabilities are always those among the tokens that are left. A step called with its
// neutral setting is a caller's bug where a comment says so, otherwise it changes nothing.
namespace exl3 {

// penalties.cpp

/// Repetition, presence and frequency penalties. An occurrence counts with strength 1 in the last
/// penalty_range tokens and fades to 0 over the repetition_decay tokens before them.
void apply_penalties(Candidates& c, const SamplerParams& p, const SamplerState& state);

// dry.cpp

/// DRY: l[t] -= m * b^(n(t) - a), n(t) the longest phrase at the end of the history that occurred
/// before with t after it, for n(t) >= a. A phrase does not cross a sequence breaker, and tokens
/// that contain one are not penalised. `vocab` may be null: then there are no breakers.
void apply_dry(Candidates& c, const SamplerParams& p, const SamplerState& state,
               const SamplerVocab* vocab);
/// How many tokens at the end of `history` come after the most recent breaker; all if none.
size_t tokens_after_breaker(std::span<const int32_t> history, const SamplerVocab& vocab,
                            std::span<const std::string> breakers);

// temperature.cpp

/// Smoothing, then dynamic or fixed temperature.
void apply_temperature(Candidates& c, const SamplerParams& p);

// truncate.cpp

void keep_top_k(Candidates& c, int k);  ///< k > 0
void keep_top_p(Candidates& c, double p);
void keep_min_p(Candidates& c, double q);
void keep_top_a(Candidates& c, double a);
void keep_typical(Candidates& c, double mass);
void keep_tail_free(Candidates& c, double z);
void keep_top_n_sigma(Candidates& c, double n);

// xtc.cpp

/// Exclude Top Choices. `roll` in (0, 1) decides in the random form only.
void apply_xtc(Candidates& c, const SamplerParams& p, const SamplerVocab* vocab, double roll);

// draw.cpp

/// Index of the drawn entry: arg max of logit + Gumbel noise, the noise a function of seed,
/// position and token id alone.
size_t draw(const Candidates& c, uint64_t seed, uint64_t position);
/// Index of the entry where the mass of the descending distribution passes r^exp(-skew).
size_t draw_skewed(Candidates& c, double r, double skew);

// feedback.cpp: the samplers that remember what they drew

/// Drops tokens that surprise more than memory.mirostat_mu (mode 2), or keeps as many as the
/// estimated Zipf exponent asks for (mode 1). `vocab` is the number of real tokens.
void keep_mirostat(Candidates& c, const SamplerParams& p, const SamplerMemory& memory, int vocab);
void update_mirostat(SamplerMemory& memory, const SamplerParams& p, double probability);
/// Replaces the logits by a bump around the probability that brings the average to the target.
/// Leaves the weights from before in c.weight and returns their sum.
double apply_adaptive(Candidates& c, const SamplerParams& p, const SamplerMemory& memory);
void update_adaptive(SamplerMemory& memory, const SamplerParams& p, double probability);
SamplerMemory start_memory(const SamplerParams& p);

}  // namespace exl3
