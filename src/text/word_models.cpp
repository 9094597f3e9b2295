#include "text/word_models.h"

#include <algorithm>

#include "text/unicode.h"

namespace exl3::text {

WordPiece::WordPiece(Vocab vocab, std::string unk_token, std::string prefix, int64_t max_chars)
    : prefix_(std::move(prefix)), max_chars_(max_chars) {
    vocab_ = std::move(vocab);
    unk_token_ = std::move(unk_token);
    unk_id_ = vocab_.find(unk_token_);
    for (int32_t id = 0; id < vocab_.id_bound(); ++id)
        if (vocab_.has(id)) longest_ = std::max(longest_, vocab_.text(id).size());
}

void WordPiece::encode(std::string_view piece, std::vector<int32_t>& ids) const {
    const size_t before = ids.size();
    const auto unknown = [&] {
        ids.resize(before);
        if (unk_id_ >= 0) ids.push_back(unk_id_);
    };
    int64_t chars = 0;
    for (size_t i = 0; i < piece.size(); i += utf8_length(piece[i])) ++chars;
    if (chars > max_chars_) return unknown();

    std::string token;
    for (size_t begin = 0; begin < piece.size();) {
        token = begin > 0 ? prefix_ : "";
        const size_t fixed = token.size();
        // From the longest that any token can be, at a character's edge, downwards.
        size_t end = std::min(piece.size(), begin + longest_);
        while (end < piece.size() && end > begin &&
               (static_cast<uint8_t>(piece[end]) & 0xC0) == 0x80)
            --end;
        int32_t id = -1;
        for (; end > begin; end = previous_index(piece, end)) {
            token.resize(fixed);
            token += piece.substr(begin, end - begin);
            if ((id = vocab_.find(token)) >= 0) break;
        }
        if (id < 0) return unknown();
        ids.push_back(id);
        begin = end;
    }
}

WordLevel::WordLevel(Vocab vocab, std::string unk_token) {
    vocab_ = std::move(vocab);
    unk_token_ = std::move(unk_token);
    unk_id_ = vocab_.find(unk_token_);
}

void WordLevel::encode(std::string_view piece, std::vector<int32_t>& ids) const {
    int32_t id = vocab_.find(piece);
    if (id < 0) id = unk_id_;
    if (id >= 0) ids.push_back(id);
}

}  // namespace exl3::text
