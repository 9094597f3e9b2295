#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/decode.h"
#include "text/normalize.h"
#include "text/post_process.h"
#include "text/pretokenize.h"
#include "text/token_model.h"
#include "text/tokenizer.h"

namespace exl3 {

/// The stages of a tokenizer, filled by the loaders (tokenizer_load.cpp, sentencepiece.cpp).
struct Tokenizer::Impl {
    std::unique_ptr<text::Normalizer> normalizer;  // may be null
    text::PreTokenizers pre_tokenizers;
    std::unique_ptr<text::TokenModel> model;
    text::AddedTokens added;
    text::PostProcessor post_processor;
    text::Decoder decoder;

    std::map<std::string, std::string> named_tokens;
    std::vector<ChatTemplateSource> chat_templates;
    bool add_bos_token = false;
    int32_t vocab_size = 0;

    std::optional<std::string_view> token(int32_t id) const;
    std::optional<int32_t> id_of(std::string_view token) const;
    std::optional<int32_t> named_id(const std::string& name) const;
    bool is_special(int32_t id) const;
    std::vector<int32_t> encode(std::string_view text, bool parse_special) const;
    void encode_normalized(std::string_view text, bool starts_input, bool parse_special,
                           std::vector<int32_t>& ids) const;
};

}  // namespace exl3
