#include "text/model_load.h"

#include <fmt/format.h>

#include <optional>

#include "text/bpe.h"
#include "text/unigram.h"
#include "text/word_models.h"

namespace exl3::text {
namespace {

/// The members of "model" as they come; the vocabulary at once, merges when it is complete.
struct ModelFile {
    std::string type;
    BpeOptions bpe;
    Vocab vocab;
    bool has_vocab = false;
    bool has_prefix = false;             // continuing_subword_prefix is given, maybe as ""
    std::optional<size_t> merges_at;     // offset in the file
    std::vector<Unigram::Piece> pieces;  // Unigram's vocabulary
    bool has_pieces = false;
    std::optional<int64_t> unk_index;
    std::optional<int64_t> max_chars;

    void read(JsonReader& reader);

private:
    void read_vocab(JsonReader& reader);
    void read_pieces(JsonReader& reader);
};

std::string string_or_null(JsonReader& reader) {
    if (reader.peek() == JsonReader::Kind::null) {
        reader.null();
        return {};
    }
    return std::string(reader.string());
}

bool flag_or_null(JsonReader& reader) {
    if (reader.peek() != JsonReader::Kind::null) return reader.boolean();
    reader.null();
    return false;
}

int32_t read_id(JsonReader& reader) {
    const int64_t id = reader.integer();
    if (id < 0 || id > Vocab::kMaxId)
        reader.fail(fmt::format("id {} is outside 0 to {}", id, Vocab::kMaxId));
    return static_cast<int32_t>(id);
}

void ModelFile::read_vocab(JsonReader& reader) {
    has_vocab = true;
    vocab.reserve(32768);
    std::string token;
    reader.object([&](std::string_view key) {
        token = key;
        vocab.set(token, read_id(reader));
    });
}

void ModelFile::read_pieces(JsonReader& reader) {
    has_pieces = true;
    reader.array([&] {
        if (static_cast<int64_t>(pieces.size()) > Vocab::kMaxId)
            reader.fail(fmt::format("has more than {} pieces", Vocab::kMaxId));
        Unigram::Piece piece;
        int at = 0;
        reader.array([&] {
            if (at == 0)
                piece.text = reader.string();
            else if (at == 1)
                piece.score = reader.number();
            else
                reader.fail("needs a piece and its score only");
            ++at;
        });
        if (at != 2) reader.fail("needs a piece and its score");
        pieces.push_back(std::move(piece));
    });
}

void ModelFile::read(JsonReader& reader) {
    reader.object([&](std::string_view key) {
        if (key == "type") {
            type = string_or_null(reader);
        } else if (key == "vocab") {
            if (reader.peek() == JsonReader::Kind::array)
                read_pieces(reader);
            else
                read_vocab(reader);
        } else if (key == "merges") {
            reader.peek();
            merges_at = reader.offset();
            reader.skip();
        } else if (key == "unk_token") {
            bpe.unk_token = string_or_null(reader);
        } else if (key == "continuing_subword_prefix") {
            has_prefix = reader.peek() == JsonReader::Kind::string;
            bpe.prefix = string_or_null(reader);
        } else if (key == "end_of_word_suffix") {
            bpe.suffix = string_or_null(reader);
        } else if (key == "ignore_merges") {
            bpe.ignore_merges = flag_or_null(reader);
        } else if (key == "byte_fallback") {
            bpe.byte_fallback = flag_or_null(reader);
        } else if (key == "fuse_unk") {
            bpe.fuse_unk = flag_or_null(reader);
        } else if (key == "unk_id" && reader.peek() != JsonReader::Kind::null) {
            unk_index = reader.integer();
        } else if (key == "max_input_chars_per_word") {
            max_chars = reader.integer();
        } else {
            reader.skip();  // dropout, which is for training, and what later versions add
        }
    });
}

// "a b", or ["a", "b"].
void read_merge(JsonReader& reader, std::string& left, std::string& right) {
    if (reader.peek() == JsonReader::Kind::array) {
        int at = 0;
        reader.array([&] {
            if (at > 1) reader.fail("needs two tokens");
            (at++ == 0 ? left : right) = reader.string();
        });
        if (at != 2) reader.fail("needs two tokens");
        return;
    }
    const std::string_view both = reader.string();
    const size_t space = both.find(' ');
    if (space == both.npos || both.find(' ', space + 1) != both.npos)
        reader.fail(fmt::format("is '{}', needs two tokens and a space between", both));
    left = both.substr(0, space);
    right = both.substr(space + 1);
}

std::unique_ptr<TokenModel> make_bpe(ModelFile& file, JsonReader& reader, bool raw_bytes) {
    file.bpe.raw_bytes =
        raw_bytes && !file.bpe.byte_fallback && file.bpe.prefix.empty() && file.bpe.suffix.empty();
    const size_t tokens = file.vocab.size();
    auto bpe = std::make_unique<Bpe>(std::move(file.vocab), std::move(file.bpe));
    if (file.merges_at) {
        reader.seek(*file.merges_at, "model.merges");
        bpe->reserve_merges(tokens * 2);
        std::vector<Bpe::MergeText> batch(64);
        size_t filled = 0;
        uint32_t rank = 0;
        const auto flush = [&] {
            const auto bad = bpe->add_merges(std::span(batch).first(filled), rank);
            if (bad)
                throw Error(Errc::invalid_file, {.file = reader.file()},
                            fmt::format("key 'model.merges[{}]': '{}' + '{}' needs both parts and "
                                        "their result in the vocabulary",
                                        rank + *bad, batch[*bad].left, batch[*bad].right));
            rank += static_cast<uint32_t>(filled);
            filled = 0;
        };
        reader.array([&] {
            read_merge(reader, batch[filled].left, batch[filled].right);
            if (++filled == batch.size()) flush();
        });
        flush();
    }
    bpe->finish();
    return bpe;
}

std::unique_ptr<TokenModel> make_unigram(const ModelFile& file, const JsonReader& reader) {
    std::optional<int32_t> unk_id;
    if (file.unk_index) {
        if (*file.unk_index < 0 || *file.unk_index >= static_cast<int64_t>(file.pieces.size()))
            throw Error(Errc::invalid_file, {.file = reader.file()},
                        fmt::format("key 'model.unk_id': is {}, the vocabulary has {} pieces",
                                    *file.unk_index, file.pieces.size()));
        unk_id = static_cast<int32_t>(*file.unk_index);
    }
    return std::make_unique<Unigram>(file.pieces, unk_id, file.bpe.byte_fallback);
}

// Files of the first versions do not name the model.
std::string guess_type(const ModelFile& file) {
    if (file.has_pieces) return "Unigram";
    if (file.merges_at) return "BPE";
    return file.max_chars ? "WordPiece" : "WordLevel";
}

}  // namespace

std::unique_ptr<TokenModel> load_model(JsonReader& reader, bool raw_bytes) {
    ModelFile file;
    file.read(reader);
    if (file.type.empty()) file.type = guess_type(file);
    const bool has_it = file.type == "Unigram" ? file.has_pieces : file.has_vocab;
    if (!has_it)
        throw Error(Errc::invalid_file, {.file = reader.file()},
                    fmt::format("key 'model.vocab': is missing, or not what {} needs", file.type));
    if (file.type == "BPE") return make_bpe(file, reader, raw_bytes);
    if (file.type == "Unigram") return make_unigram(file, reader);
    if (file.type == "WordPiece")
        return std::make_unique<WordPiece>(
            std::move(file.vocab), file.bpe.unk_token.empty() ? "[UNK]" : file.bpe.unk_token,
            file.has_prefix ? file.bpe.prefix : "##", file.max_chars.value_or(100));
    if (file.type == "WordLevel")
        return std::make_unique<WordLevel>(std::move(file.vocab), file.bpe.unk_token);
    throw Error(Errc::unsupported, {.file = reader.file()},
                fmt::format("key 'model.type': is the unknown model '{}'", file.type));
}

}  // namespace exl3::text
