#pragma once
#include <array>
#include <optional>

#include "text/token_model.h"
#include "text/trie.h"
#include "text/word_cache.h"

namespace exl3::text {

/// Unigram language model: of all ways to write a piece in tokens, the one with the highest sum of
/// scores (Kudo, arXiv 1804.10959), found by Viterbi from left to right.
class Unigram : public TokenModel {
public:
    struct Piece {
        std::string text;
        double score = 0;
        bool in_text = true;  ///< otherwise it has an id but is never found in text
    };
    /// Sums along a path: tokenizers of tokenizer.json keep them in double, SentencePiece in float.
    /// It decides between paths that are equal but for rounding.
    enum class Precision { f32, f64 };
    /// Ids are positions in `pieces`. @param unk_id  empty: unknown characters vanish
    Unigram(const std::vector<Piece>& pieces, std::optional<int32_t> unk_id, bool byte_fallback,
            Precision precision = Precision::f64);
    void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

private:
    void encode_unknown(std::string_view text, std::vector<int32_t>& ids) const;
    void encode_word(std::string_view word, std::vector<int32_t>& ids) const;

    Trie trie_;  // to ids
    std::vector<double> scores_;
    Precision precision_;
    double unk_score_ = 0;
    std::optional<int32_t> unk_id_;
    bool byte_fallback_ = false;           // and all 256 byte tokens or some of them exist
    std::array<int32_t, 256> byte_ids_{};  // of <0xHH>, -1 if absent
    mutable WordCache cache_;
};

}  // namespace exl3::text
