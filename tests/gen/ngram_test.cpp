#include "gen/ngram.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "gen/draft_window.h"

namespace exl3::test {
namespace {

std::vector<int32_t> guess(const std::vector<int32_t>& text, size_t most,
                           NgramIndex::Options options = {.least = 2}) {
    NgramIndex index(options);
    index.follow(text);
    std::vector<int32_t> out;
    index.propose(text, most, out);
    return out;
}

TEST(Ngram, GoesOnAsBefore) {
    EXPECT_EQ(guess({1, 2, 3, 4, 9, 1, 2}, 2), (std::vector<int32_t>{3, 4}));
    EXPECT_EQ(guess({1, 2, 3, 4, 9, 1, 2}, 9), (std::vector<int32_t>{3, 4, 9, 1, 2}));
    EXPECT_EQ(guess({1, 2, 3, 4, 5}, 9), (std::vector<int32_t>{}));
    EXPECT_EQ(guess({7, 7, 7}, 2), (std::vector<int32_t>{7}));
    EXPECT_EQ(guess({1}, 2), (std::vector<int32_t>{}));
}

TEST(Ngram, PrefersLongAgreementThenTheLatestOrTheMostFrequent) {
    // "0 1 2" was followed by 5; of "1 2" alone the latest occurrence went on with 6.
    EXPECT_EQ(guess({0, 1, 2, 5, 3, 1, 2, 6, 0, 1, 2}, 1), (std::vector<int32_t>{5}));
    const std::vector<int32_t> text = {1, 2, 5, 3, 1, 2, 5, 4, 1, 2, 6, 8, 1, 2};
    EXPECT_EQ(guess(text, 1), (std::vector<int32_t>{6}));
    EXPECT_EQ(guess(text, 1, {.least = 2, .frequent = true}), (std::vector<int32_t>{5}));
}

TEST(Ngram, AnIndexThatFollowedAndWentBackEqualsAFreshOne) {
    Random random(1);
    NgramIndex index({.least = 2});
    std::vector<int32_t> text;
    for (int i = 0; i < 3000; ++i) {
        if (random.below(4) == 0) {
            const size_t stay = text.size() - random.below(std::min<size_t>(text.size(), 40) + 1);
            index.truncate(text, stay);
            text.resize(stay);
        }
        for (uint64_t n = random.below(8); n > 0; --n)
            text.push_back(static_cast<int32_t>(random.below(4)));
        index.follow(text);
        std::vector<int32_t> got;
        index.propose(text, 5, got);
        ASSERT_EQ(got, guess(text, 5));
    }
}

TEST(DraftWindow, GrowsWhereGuessesHoldAndGivesUpWhereTheyDoNot) {
    DraftWindow w;
    EXPECT_EQ(w.next(4), 4);
    for (int i = 0; i < 5; ++i) w.learn(w.next(8), w.next(8));
    EXPECT_EQ(w.next(8), 8);
    for (int i = 0; i < 8; ++i) w.learn(w.next(8), 0);
    int tried = 0;
    for (int i = 0; i < 64; ++i) tried += w.next(8);
    EXPECT_EQ(tried, 4 * 2);
    EXPECT_EQ(w.next(0), 0);
}

}  // namespace
}  // namespace exl3::test
