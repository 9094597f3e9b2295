#include "text/sentencepiece.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "text/bpe.h"
#include "text/precompiled.h"
#include "text/protobuf.h"
#include "text/trie.h"
#include "text/unicode.h"
#include "text/unigram.h"

namespace exl3::text {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

SentencePieceModel::Piece read_piece(ProtoReader fields, const std::string& file, size_t index) {
    SentencePieceModel::Piece piece;
    while (fields.next()) {
        if (fields.field() == 1)
            piece.text = fields.bytes();
        else if (fields.field() == 2)
            piece.score = fields.float32();
        else if (fields.field() == 3)
            piece.type = static_cast<SentencePieceModel::Type>(fields.int32());
    }
    const auto bad = [&](std::string_view what) {
        throw Error(Errc::invalid_file, {.file = file}, fmt::format("piece {}: {}", index, what));
    };
    const int type = static_cast<int>(piece.type);
    if (type < 1 || type > 6) bad(fmt::format("is of the unknown type {}", type));
    if (!is_valid_utf8(piece.text)) bad("is not UTF-8");
    if (piece.text.empty()) bad("is empty");
    if (!std::isfinite(piece.score)) bad("has no finite score");
    return piece;
}

void read_trainer(ProtoReader fields, SentencePieceModel& model, const std::string& file) {
    while (fields.next()) switch (fields.field()) {
            case 3: {
                const int32_t type = fields.int32();
                if (type != 1 && type != 2)
                    throw Error(Errc::unsupported, {.file = file},
                                fmt::format("trainer_spec.model_type is {}, known are 1 (Unigram) "
                                            "and 2 (BPE)",
                                            type));
                model.is_bpe = type == 2;
                break;
            }
            case 24: model.space_is_suffix = fields.boolean(); break;
            case 35: model.byte_fallback = fields.boolean(); break;
            case 40: model.unk_id = fields.int32(); break;
            case 41: model.bos_id = fields.int32(); break;
            case 42: model.eos_id = fields.int32(); break;
            case 43: model.pad_id = fields.int32(); break;
            default: break;
        }
}

void read_normalizer(ProtoReader fields, SentencePieceModel& model) {
    while (fields.next()) switch (fields.field()) {
            case 2: model.char_map = fields.bytes(); break;
            case 3: model.add_dummy_prefix = fields.boolean(); break;
            case 4: model.remove_extra_spaces = fields.boolean(); break;
            case 5: model.escape_spaces = fields.boolean(); break;
            default: break;
        }
}

struct SpaceNormalizer final : Normalizer {
    std::optional<CharMap> map;
    Trie user_defined;  // pass through the map unchanged
    bool dummy_prefix, remove_extra, suffix;
    std::string space;

    size_t user_defined_at(std::string_view text) const {
        size_t longest = 0;
        uint32_t node = user_defined.first(text[0]);
        for (size_t i = 1; node != Trie::kNone; ++i) {
            if (user_defined.value(node) != Trie::kNone) longest = i;
            if (i == text.size()) break;
            node = user_defined.next(node, text[i]);
        }
        return longest;
    }

    // What the beginning of `text` becomes; moves it forward.
    std::string_view next_part(std::string_view& text) const {
        size_t bytes = user_defined_at(text);
        std::string_view part = text.substr(0, bytes);
        if (bytes == 0) {
            const auto hit = map ? map->longest(text) : std::nullopt;
            bytes = hit ? hit->bytes : utf8_length(text[0]);
            part = hit ? hit->replacement : text.substr(0, bytes);
        }
        text.remove_prefix(bytes);
        return part;
    }

    void apply(std::string& text) const override {
        std::string out;
        std::string_view rest = text;
        bool after_space = remove_extra;
        while (!rest.empty()) {
            std::string_view part = next_part(rest);
            while (after_space && part.starts_with(' ')) part.remove_prefix(1);
            if (!part.empty()) after_space = remove_extra && part.ends_with(' ');
            for (const char c : part)
                if (c == ' ')
                    out += space;
                else
                    out += c;
        }
        while (remove_extra && out.ends_with(space)) out.resize(out.size() - space.size());
        const bool anything = remove_extra ? !out.empty() : !text.empty();
        if (dummy_prefix && anything) out.insert(suffix ? out.size() : 0, space);
        text = std::move(out);
    }
};

std::unique_ptr<TokenModel> make_bpe(const SentencePieceModel& model) {
    Vocab vocab;
    vocab.reserve(model.pieces.size());
    for (size_t i = 0; i < model.pieces.size(); ++i)
        vocab.set(model.pieces[i].text, static_cast<int32_t>(i));
    BpeOptions options{.byte_fallback = model.byte_fallback, .fuse_unk = true};
    if (const auto* unk = model.piece(model.unk_id)) options.unk_token = unk->text;

    std::vector<float> scores;  // a piece's rank is the place of its score
    for (const auto& p : model.pieces) scores.push_back(p.score);
    std::sort(scores.begin(), scores.end(), std::greater<>());
    scores.erase(std::unique(scores.begin(), scores.end()), scores.end());

    const Vocab ids = vocab;
    auto bpe = std::make_unique<Bpe>(std::move(vocab), std::move(options));
    const auto part = [&](std::string_view text) {
        const int32_t id = ids.find(text);
        return id >= 0 && model.pieces[static_cast<size_t>(id)].in_text() ? id : -1;
    };
    for (size_t i = 0; i < model.pieces.size(); ++i) {
        const auto& p = model.pieces[i];
        const std::string_view text = p.text;
        if (!p.in_text() || ids.find(text) != static_cast<int32_t>(i)) continue;
        const auto rank = static_cast<uint32_t>(
            std::lower_bound(scores.begin(), scores.end(), p.score, std::greater<>()) -
            scores.begin());
        for (size_t at = utf8_length(text[0]); at < text.size(); at += utf8_length(text[at])) {
            const int32_t left = part(text.substr(0, at)), right = part(text.substr(at));
            if (left >= 0 && right >= 0) bpe->add_merge(left, right, rank, static_cast<int32_t>(i));
        }
    }
    bpe->finish();
    return bpe;
}

}  // namespace

SentencePieceModel SentencePieceModel::parse(std::string_view bytes, const std::string& file) {
    SentencePieceModel model;
    ProtoReader fields(bytes, file);
    while (fields.next()) {
        if (fields.field() == 1)
            model.pieces.push_back(read_piece(fields.message(), file, model.pieces.size()));
        else if (fields.field() == 2)
            read_trainer(fields.message(), model, file);
        else if (fields.field() == 3)
            read_normalizer(fields.message(), model);
    }
    if (model.pieces.empty() || model.pieces.size() > static_cast<size_t>(Vocab::kMaxId))
        throw Error(
            Errc::invalid_file, {.file = file},
            fmt::format("has {} pieces, needs 1 to {}", model.pieces.size(), Vocab::kMaxId));
    return model;
}

std::unique_ptr<Normalizer> make_normalizer(const SentencePieceModel& model,
                                            const std::string& file) {
    auto normalizer = std::make_unique<SpaceNormalizer>();
    if (!model.char_map.empty()) try {
            normalizer->map.emplace(model.char_map);
        } catch (const Error& e) {
            throw Error(e.code(), {.file = file}, e.what());
        }
    for (const auto& p : model.pieces)
        if (p.type == SentencePieceModel::Type::user_defined)
            normalizer->user_defined.set(p.text, 0);
    normalizer->dummy_prefix = model.add_dummy_prefix;
    normalizer->remove_extra = model.remove_extra_spaces;
    normalizer->suffix = model.space_is_suffix;
    normalizer->space = model.escape_spaces ? kSpaceMark : " ";
    return normalizer;
}

std::unique_ptr<TokenModel> make_model(const SentencePieceModel& model) {
    if (model.is_bpe) return make_bpe(model);
    std::vector<Unigram::Piece> pieces;
    for (const auto& p : model.pieces) pieces.push_back({p.text, p.score, p.in_text()});
    const auto unk_id = model.piece(model.unk_id) ? std::optional(model.unk_id) : std::nullopt;
    return std::make_unique<Unigram>(pieces, unk_id, model.byte_fallback, Unigram::Precision::f32);
}

}  // namespace exl3::text
