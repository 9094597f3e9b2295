#include "text/unigram.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/unicode.h"

namespace exl3::text {
namespace {

constexpr double kUnkPenalty = 10;  // below the worst token, as SentencePiece has it

}  // namespace

Unigram::Unigram(const std::vector<Piece>& pieces, std::optional<int32_t> unk_id,
                 bool byte_fallback, Precision precision)
    : precision_(precision), unk_id_(unk_id), byte_fallback_(byte_fallback) {
    std::optional<double> lowest;
    size_t bytes = 0;
    for (const Piece& p : pieces) bytes += p.text.size();
    trie_.reserve(bytes);
    vocab_.reserve(pieces.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
        const Piece& p = pieces[i];
        scores_.push_back(p.score);
        vocab_.set(p.text, static_cast<int32_t>(i));
        if (!p.in_text) continue;
        lowest = std::min(lowest.value_or(p.score), p.score);
        if (!p.text.empty()) trie_.set(p.text, static_cast<uint32_t>(i));
    }
    unk_score_ = lowest.value_or(0) - kUnkPenalty;
    if (unk_id_) unk_token_ = pieces[static_cast<size_t>(*unk_id_)].text;
    for (size_t b = 0; b < 256; ++b) byte_ids_[b] = vocab_.find(fmt::format("<0x{:02X}>", b));
}

void Unigram::encode(std::string_view piece, std::vector<int32_t>& ids) const {
    if (piece.size() > WordCache::kMaxWordBytes) return encode_word(piece, ids);
    const uint64_t hash = hash_bytes(piece);
    if (cache_.find(piece, hash, ids)) return;
    const size_t before = ids.size();
    encode_word(piece, ids);
    cache_.store(piece, hash, ids.data() + before, ids.size() - before);
}

void Unigram::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    constexpr uint32_t kUnknown = 0xFFFFFFFE;
    struct Node {  // the best way to reach a byte
        double score = 0;
        size_t from = std::string_view::npos;
        uint32_t id = kUnknown;
    };
    std::vector<Node> best(word.size() + 1);
    best[0].from = 0;
    // Only strictly better paths replace, so of equals the one found first stays.
    const auto offer = [&](size_t from, size_t to, double score, uint32_t id) {
        if (precision_ == Precision::f32) score = double{static_cast<float>(score)};
        if (best[to].from == std::string_view::npos || score > best[to].score)
            best[to] = {score, from, id};
    };
    for (size_t at = 0; at < word.size();) {
        const double so_far = best[at].score;
        const size_t length = utf8_length(word[at]);
        bool has_single = false;
        uint32_t node = trie_.first(word[at]);
        for (size_t end = at + 1; node != Trie::kNone; ++end) {
            if (const uint32_t id = trie_.value(node); id != Trie::kNone) {
                offer(at, end, so_far + scores_[id], id);
                has_single = has_single || end - at == length;
            }
            if (end == word.size()) break;
            node = trie_.next(node, word[end]);
        }
        if (!has_single) offer(at, at + length, so_far + unk_score_, kUnknown);
        at += length;
    }

    std::vector<std::pair<size_t, size_t>> path;  // from the end; neighbouring unknowns are one
    bool last_unknown = false;
    for (size_t end = word.size(); end > 0; end = best[end].from) {
        const uint32_t id = best[end].id;
        const bool unknown = id == kUnknown || (unk_id_ && id == static_cast<uint32_t>(*unk_id_));
        if (unknown && last_unknown)
            path.back().first = best[end].from;
        else
            path.emplace_back(best[end].from, end);
        last_unknown = unknown;
    }
    for (auto p = path.rbegin(); p != path.rend(); ++p) {
        const std::string_view text = word.substr(p->first, p->second - p->first);
        if (const int32_t id = vocab_.find(text); id >= 0 && trie_.contains(text))
            ids.push_back(id);
        else
            encode_unknown(text, ids);
    }
}

void Unigram::encode_unknown(std::string_view text, std::vector<int32_t>& ids) const {
    const auto id_of = [&](char c) { return byte_ids_[static_cast<uint8_t>(c)]; };
    if (byte_fallback_ &&
        std::all_of(text.begin(), text.end(), [&](char c) { return id_of(c) >= 0; })) {
        for (const char c : text) ids.push_back(id_of(c));
    } else if (unk_id_) {
        ids.push_back(*unk_id_);
    }
}

}  // namespace exl3::text
