#include "gen/stop.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace exl3::test {
namespace {

StopMatcher matcher(std::vector<std::string> strings) {
    return StopMatcher({.strings = std::move(strings)});
}

TEST(Stop, ReleasesTextAtOnceWhenNothingCanMatch) {
    StopMatcher m = matcher({"STOP"});
    EXPECT_EQ(m.push("Hello"), "Hello");
    EXPECT_EQ(m.push(" world S"), " world ");
    EXPECT_EQ(m.held(), "S");
    EXPECT_EQ(m.push("T"), "");
    EXPECT_EQ(m.push("ART"), "START");
    EXPECT_EQ(m.finish(), "");
    EXPECT_FALSE(m.stopped());
}

TEST(Stop, EndsBeforeAStringSplitOverPieces) {
    StopMatcher m = matcher({"\n\nUser:"});
    EXPECT_EQ(m.push("Yes.\n"), "Yes.");
    EXPECT_EQ(m.push("\nUs"), "");
    EXPECT_EQ(m.push("er: next"), "");
    EXPECT_TRUE(m.stopped());
    EXPECT_EQ(m.matched(), "\n\nUser:");
    EXPECT_EQ(m.held(), "\n\nUser: next");
    EXPECT_EQ(m.finish(), "");
}

TEST(Stop, APartialMatchIsReleasedAtTheEnd) {
    StopMatcher m = matcher({"<end>"});
    EXPECT_EQ(m.push("a<en"), "a");
    EXPECT_EQ(m.finish(), "<en");
    EXPECT_EQ(m.held(), "");
    EXPECT_FALSE(m.stopped());
    EXPECT_EQ(m.matched(), "");
}

TEST(Stop, AMismatchFallsBackToAShorterBeginning) {
    StopMatcher m = matcher({"aab"});
    EXPECT_EQ(m.push("aaa"), "a");
    EXPECT_EQ(m.push("a"), "a");
    EXPECT_EQ(m.push("b"), "");
    EXPECT_TRUE(m.stopped());
    EXPECT_EQ(m.held(), "aab");
}

TEST(Stop, TheEarliestMatchWinsEvenIfAnotherIsCompleteFirst) {
    StopMatcher whole = matcher({"bc", "abcd"});
    EXPECT_EQ(whole.push("xabcd"), "x");
    EXPECT_EQ(whole.matched(), "abcd");

    StopMatcher bytes = matcher({"bc", "abcd"});
    EXPECT_EQ(bytes.push("xabc"), "x");
    EXPECT_FALSE(bytes.stopped()) << "abcd is still possible";
    EXPECT_EQ(bytes.push("d"), "");
    EXPECT_EQ(bytes.matched(), "abcd");

    StopMatcher other = matcher({"bc", "abcd"});
    EXPECT_EQ(other.push("xabc"), "x");
    EXPECT_EQ(other.push("e"), "a");
    EXPECT_EQ(other.matched(), "bc");

    StopMatcher ended = matcher({"bc", "abcd"});
    EXPECT_EQ(ended.push("xabc"), "x");
    EXPECT_EQ(ended.finish(), "a");
    EXPECT_TRUE(ended.stopped());
    EXPECT_EQ(ended.matched(), "bc");
}

TEST(Stop, OfSeveralAtOnePlaceTheLongestIsReported) {
    StopMatcher m = matcher({"\n", "\n\n", "\n\n\n"});
    EXPECT_EQ(m.push("a\n\nb"), "a");
    EXPECT_EQ(m.matched(), "\n\n");
    StopMatcher first = matcher({"\n\n", "\n"});
    EXPECT_EQ(first.push("a\n"), "a");
    EXPECT_TRUE(first.stopped()) << "the output is decided";
    EXPECT_EQ(first.matched(), "\n");
}

TEST(Stop, CharactersStayWhole) {
    StopMatcher m = matcher({"\xf0\x9f\x98\x80!"});  // a face, then !
    EXPECT_EQ(m.push("hi \xf0\x9f\x98\x80"), "hi ");
    EXPECT_EQ(m.push("?\xf0\x9f\x98\x81"), "\xf0\x9f\x98\x80?\xf0\x9f\x98\x81");
    EXPECT_EQ(m.push("\xf0\x9f\x98\x80"), "");
    EXPECT_EQ(m.push("!"), "");
    EXPECT_TRUE(m.stopped());
}

TEST(Stop, TheStringCanStayInTheOutput) {
    StopMatcher m({.strings = {"."}, .keep_string = true});
    EXPECT_EQ(m.push("One. Two"), "One.");
    EXPECT_TRUE(m.stopped());
    EXPECT_EQ(m.held(), " Two");
}

TEST(Stop, EmptyStringsAndNoStringsNeverStop) {
    StopMatcher m = matcher({"", ""});
    EXPECT_EQ(m.push("text"), "text");
    EXPECT_EQ(m.push(""), "");
    EXPECT_EQ(m.finish(), "");
    EXPECT_FALSE(m.stopped());
    StopMatcher mixed = matcher({"", "x", "x"});
    EXPECT_EQ(mixed.push("ax"), "a");
    EXPECT_EQ(mixed.matched(), "x");
}

TEST(Stop, Tokens) {
    const StopMatcher m({.tokens = {7, 2, 7, 151645}});
    EXPECT_TRUE(m.is_stop_token(2));
    EXPECT_TRUE(m.is_stop_token(7));
    EXPECT_TRUE(m.is_stop_token(151645));
    EXPECT_FALSE(m.is_stop_token(3));
    EXPECT_FALSE(matcher({}).is_stop_token(0));
}

TEST(Stop, ACopyGoesItsOwnWay) {
    StopMatcher m = matcher({"ab"});
    EXPECT_EQ(m.push("xa"), "x");
    StopMatcher copy = m;
    EXPECT_EQ(m.push("b"), "");
    EXPECT_TRUE(m.stopped());
    EXPECT_EQ(copy.push("c"), "ac");
}

// Random texts over a small alphabet, cut at random: the output is what comes before the earliest
// match in the whole text, what is released is never more, and little is held back.
TEST(Stop, AgreesWithASearchOfTheWholeText) {
    Random random(4);
    int stops = 0;
    for (int trial = 0; trial < 20000; ++trial) {
        const auto word = [&](uint64_t length) {
            std::string s;
            for (uint64_t i = 0; i < length; ++i)
                s += static_cast<char>('a' + random.below(2 + static_cast<uint64_t>(trial % 2)));
            return s;
        };
        std::vector<std::string> strings;
        size_t longest = 0;
        for (uint64_t i = 0, n = 1 + random.below(4); i < n; ++i) {
            strings.push_back(word(1 + random.below(7)));
            longest = std::max(longest, strings.back().size());
        }
        const std::string text = word(random.below(40));
        size_t earliest = std::string::npos;
        for (const std::string& s : strings) earliest = std::min(earliest, text.find(s));
        const std::string expected = text.substr(0, earliest);

        StopMatcher m = matcher(strings);
        std::string out;
        size_t at = 0;
        while (at < text.size() && !m.stopped()) {
            const size_t n = std::min<size_t>(text.size() - at, 1 + random.below(4));
            out += m.push(std::string_view(text).substr(at, n));
            at += n;
            EXPECT_EQ(out, expected.substr(0, out.size()));
            EXPECT_EQ(out + m.held(), text.substr(0, at));
            if (!m.stopped()) {
                EXPECT_LT(m.held().size(), longest);
            }
        }
        out += m.finish();
        ASSERT_EQ(out, expected) << text;
        ASSERT_EQ(m.stopped(), earliest != std::string::npos);
        if (!m.stopped()) continue;
        ++stops;
        EXPECT_EQ(text.substr(earliest, m.matched().size()), m.matched());
        EXPECT_NE(std::find(strings.begin(), strings.end(), m.matched()), strings.end());
    }
    EXPECT_GT(stops, 5000);
}

}  // namespace
}  // namespace exl3::test
