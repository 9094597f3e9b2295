#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/sentencepiece.h"
#include "text/tokenizer_impl.h"

namespace exl3 {

/// Builds a Tokenizer from its files' contents; `file` names them in errors.
class TokenizerLoader {
public:
    void read_tokenizer_json(std::string_view text, const std::string& file);
    void read_sentencepiece(std::string_view bytes, const std::string& file);
    void read_config(std::string_view text, const std::string& file);
    void read_special_tokens_map(std::string_view text, const std::string& file);
    void read_added_tokens(std::string_view text, const std::string& file);
    Tokenizer finish();

private:
    void add_token(text::AddedToken token);
    void name_token(std::string_view name, const text::JsonNode& value);
    void read_added_tokens_decoder(text::JsonReader& reader);
    void finish_sentencepiece();

    std::shared_ptr<Tokenizer::Impl> impl_ = std::make_shared<Tokenizer::Impl>();
    std::optional<text::SentencePieceModel> sentencepiece_;
    std::optional<bool> add_bos_, add_eos_;  // of tokenizer_config.json
};

}  // namespace exl3
