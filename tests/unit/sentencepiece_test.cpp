// tokenizer.model files, written here field by field.
#include "text/sentencepiece.h"

#include <gtest/gtest.h>

#include <bit>

#include "support/golden.h"
#include "text/tokenizer.h"

namespace exl3 {
namespace {

using Ids = std::vector<int32_t>;
using Type = text::SentencePieceModel::Type;

std::string varint(uint64_t n) {
    std::string out;
    for (; n >= 0x80; n >>= 7) out += static_cast<char>(n | 0x80);
    return out + static_cast<char>(n);
}
std::string field(uint32_t number, uint64_t value) {
    return varint(number << 3) + varint(value);
}
std::string field(uint32_t number, std::string_view bytes) {
    return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}
std::string field(uint32_t number, float value) {
    std::string out = varint(number << 3 | 5);
    for (int i = 0; i < 4; ++i) out += static_cast<char>(std::bit_cast<uint32_t>(value) >> 8 * i);
    return out;
}
std::string piece(std::string_view text, float score = 0, Type type = Type::normal) {
    return field(1, field(1, text) + field(2, score) + field(3, static_cast<uint64_t>(type)));
}

constexpr uint64_t kUnigram = 1, kBpe = 2;

std::string model(uint64_t type, std::string_view normalizer = "") {
    return piece("<unk>", 0, Type::unknown) + piece("<s>", 0, Type::control) +
           piece("</s>", 0, Type::control) + piece("[X]", 0, Type::user_defined) +
           piece("<0xC3>", 0, Type::byte) + piece("<0xA9>", 0, Type::byte) + piece("▁", -1) +
           piece("a", -2) + piece("b", -3) + piece("▁a", -2.5f) + piece("ab", -5) +
           piece("▁ab", -5.25f) + piece("ba", -4.5f) +
           field(2, field(3, type) + field(35, uint64_t{1})) + field(3, normalizer);
}

Tokenizer load(const std::string& bytes, const std::string& config = "") {
    const test::TempDir folder;
    write_file(folder / "tokenizer.model", bytes);
    if (!config.empty()) write_file(folder / "tokenizer_config.json", config);
    return Tokenizer::load(folder.path());
}

std::vector<std::string> tokens(const Tokenizer& t, std::string_view text) {
    std::vector<std::string> out;
    for (const int32_t id : t.encode(text, {.add_special = false})) out.push_back(t.token_of(id));
    return out;
}
using Tokens = std::vector<std::string>;

TEST(SentencePiece, BpeMergesTheBestScoreFirst) {
    const Tokenizer t = load(model(kBpe));
    EXPECT_EQ(tokens(t, "ab"), (Tokens{"▁ab"}));
    EXPECT_EQ(tokens(t, "aba"), (Tokens{"▁a", "ba"})) << "ba (-4.5) joins before ab and ▁ab";
    EXPECT_EQ(tokens(t, "bab"), (Tokens{"▁", "ba", "b"}));
    EXPECT_EQ(tokens(t, "  a   b "), (Tokens{"▁a", "▁", "b"})) << "spaces are folded";
    EXPECT_EQ(tokens(t, "\xC3\xA9"), (Tokens{"▁", "<0xC3>", "<0xA9>"}));
    EXPECT_EQ(tokens(t, "a[X]b"), (Tokens{"▁a", "[X]", "b"}));
    EXPECT_EQ(tokens(t, "zz"), (Tokens{"▁", "<unk>"}));
}

TEST(SentencePiece, UnigramTakesTheBestSum) {
    const Tokenizer t = load(model(kUnigram));
    EXPECT_EQ(tokens(t, "ab"), (Tokens{"▁ab"}));
    EXPECT_EQ(tokens(t, "bab"), (Tokens{"▁", "ba", "b"}));
}

TEST(SentencePiece, SpecialTokensAreParsedOnlyOnRequest) {
    const Tokenizer t = load(model(kUnigram));
    EXPECT_EQ(t.encode("<s>a"), (Ids{1, 1, 9}));
    EXPECT_EQ(t.encode_prompt("<s>a"), (Ids{1, 9}));
    const Ids plain = t.encode("<s>a", {.add_special = false, .parse_special = false});
    EXPECT_EQ(std::count(plain.begin(), plain.end(), 1), 0);
    EXPECT_EQ(t.bos_id(), 1);
    EXPECT_EQ(t.eos_id(), 2);
    EXPECT_EQ(t.unk_id(), 0);
    EXPECT_EQ(t.pad_id(), std::nullopt);
    const Tokenizer no_bos =
        load(model(kUnigram), R"({"add_bos_token": false, "add_eos_token": true})");
    EXPECT_EQ(no_bos.encode("a"), (Ids{9, 2}));
}

TEST(SentencePiece, DecodeGivesTheTextBack) {
    for (const uint64_t type : {kUnigram, kBpe}) {
        const Tokenizer t = load(model(type));
        for (const std::string text : {"ab a",
                                       "b\xC3\xA9"
                                       "b [X]a"})
            EXPECT_EQ(t.decode(t.encode(text)), text);
    }
}

TEST(SentencePiece, NormalizerFlags) {
    const std::string no_prefix = field(3, uint64_t{0});
    EXPECT_EQ(tokens(load(model(kBpe, no_prefix)), " a  a"), (Tokens{"a", "▁a"}));
    const std::string keep_spaces = field(3, uint64_t{0}) + field(4, uint64_t{0});
    EXPECT_EQ(tokens(load(model(kBpe, keep_spaces)), " a  a"), (Tokens{"▁a", "▁", "▁a"}));
}

TEST(SentencePiece, DamagedFilesAreRefused) {
    const auto refuse = [](const std::string& bytes, std::string_view what) {
        try {
            load(bytes);
            FAIL() << "accepted: " << what;
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
        }
    };
    refuse("", "has 0 pieces");
    refuse("\xFF\xFF\xFF", "message ends inside a number");
    refuse(std::string(12, '\xFF'), "more than 10 bytes");
    refuse(model(kBpe).substr(0, 20), "message ends after");
    refuse(piece("a") + field(1, uint64_t{3}), "field 1 is not a string");
    refuse(piece("\xFF"), "piece 0: is not UTF-8");
    refuse(piece(""), "piece 0: is empty");
    refuse(piece("a", 0, static_cast<Type>(9)), "unknown type 9");
    refuse(piece("a") + field(2, field(3, uint64_t{4})), "model_type is 4");
    refuse(piece("a") + field(3, field(2, "abc")), "damaged character map");
    refuse(piece("a") + field(3, field(2, "\xFF\xFF\xFF\x7Fzzzz")), "damaged character map");
}

}  // namespace
}  // namespace exl3
