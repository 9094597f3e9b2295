#pragma once
#include <string>

#include "io/gguf.h"
#include "io/json.h"

namespace exl3 {

/// The tokenizer of a GGUF file as the two files a Hugging Face checkpoint has.
struct GgufTokenizer {
    std::string tokenizer_json;
    Json config;  ///< tokenizer_config.json: named tokens, BOS and EOS flags, chat templates
};

/// Rebuilds it from the tokenizer.* keys: byte-level BPE ("gpt2"), whose splitting rules
/// tokenizer.ggml.pre names, and SentencePiece BPE ("llama", "gemma4"), whose merges follow from
/// the scores where the file lists none. A tokenizer.huggingface.json in the file is taken as it
/// is. Throws Error naming the key: {unsupported} for other kinds and unknown splitting rules,
/// {invalid_file} for lists of different lengths, ids without a token, tokens that are not UTF-8.
GgufTokenizer rebuild_tokenizer(const GgufModel& gguf);

}  // namespace exl3
