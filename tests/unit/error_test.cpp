#include "base/error.h"

#include <gtest/gtest.h>

namespace exl3 {
namespace {

TEST(Error, SaysWhereAndWhat) {
    EXPECT_STREQ(Error(Errc::invalid_file, {"f", "t", 7}, "what").what(),
                 "f: tensor 't': at byte 7: what");
    EXPECT_STREQ(Error(Errc::io, {}, "what").what(), "what");
}

TEST(Error, StaysOnOneLineOfReadableLength) {
    const Error e(Errc::invalid_file, {"f\n", std::string(1000, 't') + "\x7f", {}},
                  "a\rb\x1b[1m é");
    const std::string text = e.what();
    EXPECT_EQ(text, "f\\x0a: tensor '" + std::string(256, 't') + "...': a\\x0db\\x1b[1m é");
    EXPECT_EQ(e.where().tensor.size(), 1001u) << "the fields themselves are as they were";
}

TEST(Error, IsCutBetweenCharacters) {
    std::string name;
    for (int i = 0; i < 200; ++i) name += "é";
    const std::string text = Error(Errc::io, {"", "x" + name, {}}, "").what();
    EXPECT_NE(text.find("é...'"), std::string::npos) << text;
}

}  // namespace
}  // namespace exl3
