// Each component of a tokenizer.json, and small whole tokenizers, against what the reference makes
// of them (tests/golden/make_tokenizer_parts.py).
#include <gtest/gtest.h>

#include "support/golden.h"
#include "text/byte_level.h"
#include "text/decode.h"
#include "text/json_reader.h"
#include "text/normalize.h"
#include "text/pretokenize.h"
#include "text/tokenizer.h"

namespace exl3 {
namespace {

using Ids = std::vector<int32_t>;

const Json& parts() {
    static const Json all = parse_json(read_file(std::filesystem::path(EXL3_SOURCE_DIR) /
                                                 "tests/golden/data/tokenizer-parts.json")
                                           .value(),
                                       "tokenizer-parts.json")
                                .value();
    return all;
}

// Calls check(component, cases) for each entry, with the component as the loaders take it.
template <typename F>
void for_each_config(const char* kind, F&& check) {
    ASSERT_FALSE(parts().at(kind).empty());
    for (const Json& entry : parts().at(kind)) {
        const std::string config = entry.at("config").dump();
        SCOPED_TRACE(config);
        const text::JsonValue value = text::JsonReader(config, "parts").value();
        check(text::JsonNode(value, "parts", kind), entry.at("cases"));
    }
}

TEST(TokenizerParts, Normalizers) {
    for_each_config("normalizer", [](const text::JsonNode& node, const Json& cases) {
        const auto normalizer = text::load_normalizer(node);
        for (const Json& one : cases) {
            std::string s = one[0].get<std::string>();
            normalizer->apply(s);
            EXPECT_EQ(s, one[1].get<std::string>()) << one[0];
        }
    });
}

TEST(TokenizerParts, PreTokenizers) {
    for_each_config("pre_tokenizer", [](const text::JsonNode& node, const Json& cases) {
        const text::PreTokenizers steps = text::load_pre_tokenizers(node);
        for (const Json& one : cases) {
            const std::string s = one[0].get<std::string>();
            text::Pieces pieces;
            pieces.text = s;
            pieces.ranges = {{0, s.size()}};
            pieces.starts_input = true;
            for (const auto& step : steps) step->apply(pieces);
            std::vector<std::string> found;
            for (const auto range : pieces.ranges) found.emplace_back(pieces.piece(range));
            EXPECT_EQ(found, one[1].get<std::vector<std::string>>()) << one[0];
        }
    });
}

// Whether a mapping of bytes can be left out, it must not change what is split where.
TEST(TokenizerParts, PreTokenizersThatKeepBytes) {
    int kept = 0;
    for_each_config("pre_tokenizer", [&](const text::JsonNode& node, const Json& cases) {
        text::PreTokenizers steps = text::load_pre_tokenizers(node);
        if (!text::gives_bytes(steps)) return;
        text::keep_bytes(steps);
        ++kept;
        for (const Json& one : cases) {
            const std::string s = one[0].get<std::string>();
            text::Pieces pieces;
            pieces.text = s;
            pieces.ranges = {{0, s.size()}};
            for (const auto& step : steps) step->apply(pieces);
            std::vector<std::string> found;
            for (const auto range : pieces.ranges)
                text::append_stand_ins(found.emplace_back(), pieces.piece(range));
            EXPECT_EQ(found, one[1].get<std::vector<std::string>>()) << one[0];
        }
    });
    EXPECT_GE(kept, 5);
}

TEST(TokenizerParts, Decoders) {
    for_each_config("decoder", [](const text::JsonNode& node, const Json& cases) {
        const text::Decoder decoder = text::Decoder::load(node);
        for (const Json& one : cases) {
            std::string out;
            text::Decoder::Run run(decoder, {}, out);
            for (const Json& token : one[0]) {
                const std::string before = out;
                run.push(token.get<std::string>());
                EXPECT_TRUE(one[1].get<std::string>().starts_with(before));
            }
            run.finish();
            EXPECT_EQ(out, one[1].get<std::string>()) << one[0];
        }
    });
}

TEST(TokenizerParts, WholeTokenizers) {
    for (const Json& entry : parts().at("tokenizer")) {
        const std::string config = entry.at("config").dump();
        const Tokenizer tokenizer = Tokenizer::from_json(config);
        for (const Json& one : entry.at("cases")) {
            SCOPED_TRACE(one.at("text").dump() + " in " + config.substr(0, 1000));
            const std::string s = one.at("text").get<std::string>();
            const Ids ids = one.at("ids").get<Ids>();
            EXPECT_EQ(tokenizer.encode(s, {.add_special = false}), ids);
            EXPECT_EQ(tokenizer.encode(s), one.at("ids_special").get<Ids>());
            EXPECT_EQ(tokenizer.encode(s, {.add_special = false, .parse_special = false}),
                      one.at("ids_plain").get<Ids>());
            EXPECT_EQ(tokenizer.decode(ids), one.at("decode_skip").get<std::string>());
            EXPECT_EQ(tokenizer.decode(ids, {.skip_special = false}),
                      one.at("decode").get<std::string>());
        }
    }
}

}  // namespace
}  // namespace exl3
