#pragma once
#include "text/token_model.h"

namespace exl3::text {

/// WordPiece: the longest token that begins the word, then the longest that goes on (with the
/// prefix); a word that cannot be written so, or is too long, is unk as a whole.
class WordPiece : public TokenModel {
public:
    WordPiece(Vocab vocab, std::string unk_token, std::string prefix, int64_t max_chars);
    void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

private:
    std::string prefix_;
    int64_t max_chars_;
    size_t longest_ = 0;  // token, in bytes
    int32_t unk_id_;
};

/// WordLevel: a piece is one token or unk.
class WordLevel : public TokenModel {
public:
    WordLevel(Vocab vocab, std::string unk_token);
    void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

private:
    int32_t unk_id_;
};

}  // namespace exl3::text
