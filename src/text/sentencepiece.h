#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalize.h"
#include "text/token_model.h"

namespace exl3::text {

/// A SentencePiece model (tokenizer.model): the fields of sentencepiece_model.proto that matter.
struct SentencePieceModel {
    enum class Type { normal = 1, unknown, control, user_defined, unused, byte };
    struct Piece {
        std::string text;
        float score = 0;
        Type type = Type::normal;
        /// Whether text can contain it as such.
        bool in_text() const { return type == Type::normal || type == Type::user_defined; }
    };
    std::vector<Piece> pieces;
    bool is_bpe = false;  ///< otherwise Unigram
    bool byte_fallback = false;
    bool space_is_suffix = false;
    int32_t unk_id = 0, bos_id = 1, eos_id = 2, pad_id = -1;  ///< negative: none
    std::string char_map;                                     ///< see CharMap; may be empty
    bool add_dummy_prefix = true;
    bool remove_extra_spaces = true;
    bool escape_spaces = true;

    /// Throws Error{invalid_file} or {unsupported} naming `file`.
    static SentencePieceModel parse(std::string_view bytes, const std::string& file);
    const Piece* piece(int32_t id) const {
        return id >= 0 && static_cast<size_t>(id) < pieces.size() ? &pieces[static_cast<size_t>(id)]
                                                                  : nullptr;
    }
};

/// Replacement by the longest keys of the map, spaces folded and escaped, dummy prefix added.
std::unique_ptr<Normalizer> make_normalizer(const SentencePieceModel& model,
                                            const std::string& file);

/// Unigram, or BPE whose merges follow from the scores: of neighbours that join to a piece, those
/// whose piece scores highest join first.
std::unique_ptr<TokenModel> make_model(const SentencePieceModel& model);

}  // namespace exl3::text
