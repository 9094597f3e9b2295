#include "io/json.h"

#include <gtest/gtest.h>

namespace exl3 {
namespace {

std::string error_of(std::string_view text) {
    const auto r = parse_json(text, "f.json");
    return r ? "" : r.error().what();
}

TEST(Json, ReadsEveryKindOfValueAndKeepsTheOrderOfKeys) {
    const auto json =
        parse_json(R"( {"z": 1, "a": [true, null, -2.5e3, "\u00e9\ud83d\ude00"], "m": {}} )", "f")
            .value();
    EXPECT_EQ(json.dump(), "{\"z\":1,\"a\":[true,null,-2500.0,\"é😀\"],\"m\":{}}");
    EXPECT_EQ(parse_json("18446744073709551615", "f").value().get<uint64_t>(), UINT64_MAX);
    EXPECT_EQ(parse_json("-9223372036854775808", "f").value().get<int64_t>(), INT64_MIN);
}

TEST(Json, IntegersBeyond64BitsAreDoubles) {
    // tokenizer_config.json files really hold this number.
    const auto json = parse_json("1000000000000000019884624838656", "f").value();
    EXPECT_TRUE(json.is_number_float());
    EXPECT_EQ(json.get<double>(), 1e30);
}

TEST(Json, ErrorsNameTheFileAndTheByte) {
    const struct {
        std::string_view text;
        const char* says;
    } cases[] = {
        {"", "f.json: at byte 0: found malformed JSON"},
        {"{\"a\":1", "at byte 6: found malformed JSON"},
        {"{\"a\":1,}", "at byte 7: found malformed JSON"},
        {"[1 2]", "at byte 3: found malformed JSON"},
        {"[1] x", "at byte 4: found malformed JSON"},
        {"[NaN]", "at byte 1: found malformed JSON"},
        {"[01]", "at byte 2: found malformed JSON"},
        {"[1e999]", "found malformed JSON: number overflow"},
        {"[-1e999]", "found malformed JSON: number overflow"},
        {"'a'", "at byte 0: found malformed JSON"},
        {"// c\n1", "at byte 0: found malformed JSON"},
        {"[\"\\q\"]", "found malformed JSON"},
        {"[\"a\nb\"]", "found malformed JSON"},
        {"[\"\\ud800\"]", "found malformed JSON"},
        {"[\"\xff\"]", "at byte 2: found malformed JSON"},
        {"[\"\xc0\x80\"]", "found malformed JSON"},          // overlong
        {"[\"\xed\xa0\x80\"]", "found malformed JSON"},      // a surrogate
        {"[\"\xf4\x90\x80\x80\"]", "found malformed JSON"},  // beyond U+10FFFF
        {std::string_view("{}\0{}", 5), "at byte 2: found malformed JSON: a zero byte"},
        {R"({"a":1,"b":2,"a":3})", "f.json: at byte 13: found key 'a' twice"},
        {R"({"x":{"b":2, "b":3}})", "at byte 13: found key 'b' twice"},
        {R"({"a":1,"\u0061":3})", "at byte 7: found key 'a' twice"},
        {R"({"q\"":1,"q\"":3})", "at byte 9: found key 'q\"' twice"},
        {R"({"\\":1,"\\":3})", "at byte 8: found key '\\' twice"},
    };
    for (const auto& c : cases) {
        const std::string error = error_of(c.text);
        EXPECT_NE(error.find(c.says), std::string::npos) << c.text << " gives " << error;
        EXPECT_EQ(error.find('\n'), std::string::npos) << "not one line: " << error;
        for (const char b : error) EXPECT_GE(b, 0) << "raw bytes of the file: " << error;
    }
}

TEST(Json, DepthIsLimitedTo512) {
    const auto nested = [](size_t depth) {
        return std::string(depth, '[') + std::string(depth, ']');
    };
    EXPECT_EQ(error_of(nested(512)), "");
    EXPECT_NE(error_of(nested(513)).find("at byte 512: found lists and objects nested deeper"),
              std::string::npos);
    EXPECT_NE(error_of(std::string(5'000'000, '[')).find("at byte 512"), std::string::npos);
    std::string objects;
    for (int i = 0; i < 600; ++i) objects += "{\"a\":";
    EXPECT_NE(error_of(objects).find("nested deeper"), std::string::npos);
}

TEST(Json, OffsetsOfTheOutermostKeysAreGivenFromTheBase) {
    std::vector<uint64_t> offsets;
    const std::string text = R"({"a":{"x":1}, "b\"\\":[{"y":1}] ,"c":0})";
    parse_json(text, "f", &offsets, 100).value();
    EXPECT_EQ(offsets, (std::vector<uint64_t>{101, 114, 133}));
    EXPECT_STREQ(parse_json("[", "f", nullptr, 8).error().what(),
                 error_of("[").replace(0, 19, "f: at byte 9: ").c_str());
}

TEST(Json, ALargeObjectIsReadInReasonableTime) {
    // 200,000 keys, a vocabulary's size: looking each up in the ordered object takes minutes.
    std::string text = "{";
    for (int i = 0; i < 200'000; ++i)
        text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":" + std::to_string(i);
    const auto json = parse_json(text + "}", "f").value();
    EXPECT_EQ(json.size(), 200'000u);
    EXPECT_EQ(json.front().get<int>(), 0);
    EXPECT_NE(error_of(text + ",\"k7\":1}").find("found key 'k7' twice"), std::string::npos);
}

}  // namespace
}  // namespace exl3
