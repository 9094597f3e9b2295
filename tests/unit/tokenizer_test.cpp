#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace exl3 {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer tales() {
    return Tokenizer::load(std::filesystem::path(EXL3_SOURCE_DIR) / "models/tales-9m");
}

TEST(Tokenizer, DemoModelRoundTrips) {
    const Tokenizer t = tales();
    EXPECT_EQ(t.vocab_size(), 4096);
    EXPECT_EQ(t.eos_id(), 0);
    EXPECT_FALSE(t.adds_bos());
    EXPECT_TRUE(t.is_special(0));
    const std::string text =
        "Once upon a time, 12 foxes\n\tran <|endoftext|> \xC3\xA9\xE2\x82\xAC!";
    const Ids ids = t.encode(text);
    EXPECT_EQ(t.decode(ids, {.skip_special = false}), text);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 0), 1);
    const Ids plain = t.encode(text, {.parse_special = false});
    EXPECT_EQ(std::count(plain.begin(), plain.end(), 0), 0);
    EXPECT_EQ(t.decode(plain), text);
}

TEST(Tokenizer, DemoModelStreams) {
    const Tokenizer t = tales();
    const std::string text = "a \xF0\x9F\x98\x80 smile";
    StreamDecoder stream(t);
    std::string sent;
    for (const int32_t id : t.encode(text)) {
        sent += stream.push(id);
        EXPECT_TRUE(text.starts_with(sent));
    }
    EXPECT_EQ(sent + stream.flush(), text);
}

}  // namespace
}  // namespace exl3
