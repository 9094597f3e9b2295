#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocab.h"

namespace exl3::text {

/// The stage that turns one piece of pre-tokenized text into ids: BPE, Unigram, WordPiece or
/// WordLevel. Const and thread-safe once loaded.
class TokenModel {
public:
    TokenModel() = default;
    virtual ~TokenModel() = default;
    TokenModel(const TokenModel&) = delete;
    TokenModel& operator=(const TokenModel&) = delete;

    /// Appends the ids of `piece` (valid UTF-8, or raw bytes if takes_raw_bytes()).
    virtual void encode(std::string_view piece, std::vector<int32_t>& ids) const = 0;
    /// Whether pieces come as bytes although the vocabulary is written in byte stand-ins.
    virtual bool takes_raw_bytes() const { return false; }
    const Vocab& vocab() const { return vocab_; }
    const std::string& unk_token() const { return unk_token_; }  ///< empty: none

protected:
    Vocab vocab_;
    std::string unk_token_;
};

}  // namespace exl3::text
