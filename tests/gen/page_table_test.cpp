#include "cache/page_table.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/blake2b.h"
#include "base/random.h"

namespace exl3::test {
namespace {

std::string digest(std::string_view text) {
    Blake2b128 hash;
    hash.update(std::as_bytes(std::span(text.substr(0, text.size() / 3))));
    hash.update(std::as_bytes(std::span(text.substr(text.size() / 3))));
    const auto words = hash.finish();
    std::string hex;
    for (size_t i = 0; i < 16; ++i) {
        const auto byte = static_cast<unsigned>(words[i / 8] >> (8 * (i % 8)) & 0xFF);
        hex += "0123456789abcdef"[byte >> 4];
        hex += "0123456789abcdef"[byte & 15];
    }
    return hex;
}

// From Python's hashlib.blake2b(..., digest_size=16).
TEST(Blake2b, KnownDigests) {
    std::string bytes(256, '\0');
    std::iota(bytes.begin(), bytes.end(), '\0');
    EXPECT_EQ(digest(""), "cae66941d9efbd404e4d88758ea67670");
    EXPECT_EQ(digest("abc"), "cf4ab791c62b8d2b2109c90275287816");
    EXPECT_EQ(digest(bytes + bytes + bytes + bytes + bytes), "825c7cfa8fc12c18f57b6046a548db9f");
    EXPECT_EQ(digest(bytes.substr(0, 128)), "a74787004ef589e31149183900d0294a");
}

std::vector<int32_t> page_of(int32_t first) {
    std::vector<int32_t> v(kPageTokens);
    std::iota(v.begin(), v.end(), first);
    return v;
}

/// Fills a page after `before` and returns its name.
PageName fill(PageTable& t, const PageName& before, int32_t first, std::vector<int>& pages) {
    const auto tokens = page_of(first);
    const PageName name = page_name(before, tokens);
    pages.push_back(t.finish_fill(t.take(), before, name, tokens));
    return name;
}

TEST(PageTable, GivesUpTheTailFirstAndTheOldestTextFirst) {
    PageTable t(4);
    std::vector<int> a, b;
    const PageName a1 = fill(t, root_name(""), 0, a), a2 = fill(t, a1, 1, a);
    const PageName b1 = fill(t, root_name(""), 2, b), b2 = fill(t, b1, 3, b);
    EXPECT_EQ(t.take(), PageTable::kNone);
    t.release_all(a);
    t.release_all(b);
    EXPECT_EQ(t.cached(), 4);
    t.take();
    EXPECT_EQ(t.find(a2), PageTable::kNone);
    EXPECT_NE(t.find(a1), PageTable::kNone);
    t.share(t.find(a1));
    t.take();
    EXPECT_EQ(t.find(b2), PageTable::kNone);
    EXPECT_NE(t.find(b1), PageTable::kNone);
    EXPECT_EQ(t.evictions(), 2);
    t.audit();
}

TEST(PageTable, APageFilledTwiceBecomesOne) {
    PageTable t(3);
    std::vector<int> a, b;
    const PageName name = fill(t, root_name(""), 0, a);
    EXPECT_EQ(fill(t, root_name(""), 0, b), name);
    EXPECT_EQ(a, b);
    EXPECT_EQ(t.users(a[0]), 2);
    EXPECT_EQ(t.in_use(), 1);
    t.audit();
}

TEST(PageTable, FindsTheLongestBeginning) {
    PageTable t(4);
    std::vector<int> pages;
    const PageName root = root_name("");
    fill(t, root, 0, pages);
    auto tokens = page_of(0);
    tokens[100] = -1;
    t.release_beginning(t.take(), root, std::span(tokens).first(120));
    EXPECT_EQ(t.find_beginning(root, tokens).tokens, 120);
    EXPECT_EQ(t.find_beginning(root, page_of(0)).page, pages[0]);
    EXPECT_EQ(t.find_beginning(root, page_of(7)).page, PageTable::kNone);
    EXPECT_EQ(t.find_beginning(root_name("salt"), page_of(0)).page, PageTable::kNone);
    t.audit();
}

TEST(PageTable, BooksBalanceUnderRandomUse) {
    PageTable t(12);
    Random random(3);
    std::vector<std::vector<int>> held;
    for (int i = 0; i < 3000; ++i) {
        if (!held.empty() && random.below(3) == 0) {
            const size_t k = random.below(held.size());
            t.release_all(held[k]);
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(k));
        } else if (t.available() >= 3) {
            PageName before = root_name("");
            held.emplace_back();
            for (int p = 0; p < 3; ++p)
                before = fill(t, before, static_cast<int32_t>(random.below(3)), held.back());
        }
        if (t.available() > 0 && random.coin())
            t.release_beginning(t.take(), root_name(""),
                                std::vector<int32_t>(random.below(kPageTokens), 7));
        t.audit();
    }
    for (const auto& pages : held) t.release_all(pages);
    EXPECT_EQ(t.in_use(), 0);
    t.audit();
}

}  // namespace
}  // namespace exl3::test
