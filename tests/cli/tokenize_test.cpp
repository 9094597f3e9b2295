#include "support/golden.h"
#include "support/program.h"
#include "support/temp_folder.h"

namespace exl3::test {
namespace {

TEST(Tokenize, RoundTripsTextThroughEveryInput) {
    const TempFolder folder;
    const std::string text =
        "Once upon a time, \"said\" the fox:\n\n\xC3\xA9\xE2\x82\xAC \xF0\x9F\xA6\x8A 42";
    const std::string file = folder.write("text", text).string();
    const Finished direct = exl3({"tokenize", "-m", tales(), "--text", text});
    const Finished from_file = exl3({"tokenize", "-m", tales(), "--text-file", file});
    const Finished from_stdin = exl3({"tokenize", "-m", tales(), "--text-file", "-"}, text);
    ASSERT_EQ(direct.status, 0) << direct.err;
    EXPECT_EQ(direct.out, from_file.out);
    EXPECT_EQ(direct.out, from_stdin.out);
    EXPECT_GT(direct.json().size(), 10u);
    for (const bool stream : {false, true}) {
        std::vector<std::string> args = {"detokenize", "-m", tales(), "--ids", "-"};
        if (stream) args.push_back("--stream");
        EXPECT_EQ(exl3(args, direct.out).out, text);
    }
}

TEST(Tokenize, BatchIsOneAnswerPerText) {
    const Finished f = exl3({"tokenize", "-m", tales(), "--batch", "-"}, R"(["Once", "", "a b"])");
    ASSERT_EQ(f.status, 0) << f.err;
    const Json rows = f.json();
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0], exl3({"tokenize", "-m", tales(), "--text", "Once"}).json());
    EXPECT_TRUE(rows[1].empty());

    const Finished back = exl3({"detokenize", "-m", tales(), "--batch", "-"}, f.out);
    EXPECT_EQ(back.json(), Json({"Once", "", "a b"}));
    const Json pieces =
        exl3({"detokenize", "-m", tales(), "--batch", "-", "--stream"}, f.out).json();
    for (size_t i = 0; i < rows.size(); ++i) {
        std::string joined;
        for (const Json& piece : pieces[i]) joined += piece.get<std::string>();
        EXPECT_EQ(joined, back.json()[i]);
        EXPECT_EQ(pieces[i].size(), rows[i].size());
    }
}

TEST(Tokenize, SpecialTokensInTextAreTokensUnlessToldOtherwise) {
    const std::vector<std::string> base = {"tokenize", "-m", tales(), "--text", "a<|endoftext|>"};
    auto plain = base;
    plain.push_back("--no-parse-special");
    EXPECT_EQ(exl3(base).json().back(), 0);
    const Finished as_text = exl3(plain);
    EXPECT_GT(as_text.json().size(), exl3(base).json().size());
    EXPECT_EQ(exl3({"detokenize", "-m", tales(), "--ids", "-"}, as_text.out).out, base.back());

    const Finished ids = exl3(base);
    EXPECT_EQ(exl3({"detokenize", "-m", tales(), "--ids", "-"}, ids.out).out, "a");
    EXPECT_EQ(exl3({"detokenize", "-m", tales(), "--ids", "-", "--keep-special"}, ids.out).out,
              base.back());
}

TEST(Tokenize, BadInputNamesItsPlace) {
    const auto error = [](const std::vector<std::string>& args, const std::string& input) {
        const Finished f = exl3(args, input);
        EXPECT_EQ(f.status, 1) << input;
        EXPECT_EQ(f.out, "");
        return f.err;
    };
    const std::vector<std::string> ids = {"detokenize", "-m", tales(), "--ids", "-"};
    EXPECT_NE(error(ids, "[1, \"x\"]").find("stdin: entry 1: found \"x\""), std::string::npos);
    EXPECT_NE(error(ids, "[1, -1]").find("entry 1: found -1"), std::string::npos);
    EXPECT_NE(error(ids, "[1.5]").find("entry 0: found 1.5"), std::string::npos);
    EXPECT_NE(error(ids, "[18446744073709551615]").find("entry 0"), std::string::npos);
    EXPECT_NE(error(ids, "{}").find("found object"), std::string::npos);
    EXPECT_NE(error(ids, "[1,").find("stdin"), std::string::npos);
    const std::vector<std::string> batch = {"tokenize", "-m", tales(), "--batch", "-"};
    EXPECT_NE(error(batch, "[\"a\", 7]").find("entry 1: found number"), std::string::npos);
}

}  // namespace
}  // namespace exl3::test
