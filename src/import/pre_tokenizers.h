#pragma once
#include <optional>
#include <string_view>

#include "io/json.h"

namespace exl3 {

/// What the name in tokenizer.ggml.pre stands for.
struct PreTokenizer {
    Json normalizer;             ///< null or an object, as in tokenizer.json
    Json pre_tokenizer;          ///< the same
    bool ignore_merges = false;  ///< a word that is a token needs no merges
    bool adds_bos = false;       ///< where the file does not say
};

/// Empty for an unknown name.
std::optional<PreTokenizer> pre_tokenizer_named(std::string_view name);

/// Every name known, for error messages.
std::string known_pre_tokenizers();

}  // namespace exl3
