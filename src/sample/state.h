#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sample/token_mask.h"

namespace exl3 {

/// What samplers need to know about a tokenizer; one per model, shared by its jobs.
struct SamplerVocab {
    int size = 0;  ///< real tokens; logits from here on are padding, never drawn
    std::vector<std::string>
        pieces;               ///< (size) bytes of each token; DRY looks for breakers in them
    TokenMask xtc_protected;  ///< tokens XTC never excludes
};

/// XTC spares what ends a line or a turn: pieces with a newline, and the tokens for which
/// `is_special` says so (special and added ones).
SamplerVocab make_sampler_vocab(std::vector<std::string> pieces,
                                const std::function<bool(int32_t)>& is_special);

/// Memory of mirostat and adaptive-p. Plain numbers: a caller that rewinds may keep a copy.
struct SamplerMemory {
    double mirostat_mu = 0;      ///< largest surprise still allowed, in bits
    double adaptive_sum = 0;     ///< decayed sum of the probabilities of drawn tokens
    double adaptive_weight = 1;  ///< decayed count of drawn tokens
};

/// One sequence as the sampler sees it; made by Sampler::start(). The caller keeps `history` in
/// step with the sequence: accept() after each token, rewind() when tokens are taken back.
struct SamplerState {
    uint64_t seed = 0;
    std::vector<int32_t> history;  ///< prompt, then output; ids outside the vocabulary (embedding
                                   ///< positions) are ignored by every step
    size_t prompt_tokens = 0;      ///< how much of `history` is prompt
    /// With `seed` and the token's id it fixes the noise of the next draw: the index of the token
    /// that is drawn next. Independent of batch, drafts and requeues.
    uint64_t position = 0;
    std::vector<int32_t> banned;  ///< tokens forbidden at this position only (stop tokens before
                                  ///< min_new_tokens, beginnings of a banned string)
    SamplerMemory memory;

    void accept(int32_t token) {
        history.push_back(token);
        ++position;
    }
    /// Back to the first `tokens` tokens of the history.
    void rewind(size_t tokens) {
        position -= history.size() - tokens;
        history.resize(tokens);
    }
};

}  // namespace exl3
