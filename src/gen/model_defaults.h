#pragma once
#include <memory>
#include <vector>

#include "io/checkpoint.h"
#include "sample/params.h"
#include "sample/state.h"
#include "text/tokenizer.h"

namespace exl3 {

/// The token ids that end an answer: those of config.json, generation_config.json and
/// tokenizer_config.json, then the special tokens that are known to end a turn in some family of
/// models ("<|im_end|>", "<|eot_id|>", ...), as far as the tokenizer has them. Without repeats.
std::vector<int32_t> end_tokens(const HfConfig& config, const std::optional<HfConfig>& generation,
                                const Tokenizer& tokenizer);

/// The sampler settings a model asks for in generation_config.json (temperature, top_k, top_p,
/// min_p, typical_p, repetition_penalty); recommended_params() where it names none.
/// Throws Error{invalid_file} for a value of the wrong type.
SamplerParams default_params(const std::optional<HfConfig>& generation);

/// What samplers need to know about a tokenizer.
std::shared_ptr<const SamplerVocab> sampler_vocab(const Tokenizer& tokenizer);

}  // namespace exl3
