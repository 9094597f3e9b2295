#include <gtest/gtest.h>

#include "grammar/grammar_constraint.h"
#include "support/tales.h"

namespace exl3::test {
namespace {

std::shared_ptr<const TokenTrie> trie() {
    static const auto tree = TokenTrie::of(Tales::get().tokenizer, {0});
    return tree;
}

std::shared_ptr<TokenConstraint> hold(std::shared_ptr<Constraint> c, ConstraintStart start = {}) {
    return std::make_shared<GrammarConstraint>(std::move(c), std::move(start));
}

JobRequest constrained(std::shared_ptr<TokenConstraint> c, int64_t n, uint64_t seed) {
    Tales& t = Tales::get();
    JobRequest r{.prompt = t.tokens(0, 20),
                 .max_new_tokens = n,
                 .stop = {.tokens = {0}},
                 .sampler = t.sampler({.temperature = 1.5}),
                 .seed = seed};
    r.constraint = std::move(c);
    return r;
}

TEST(Constrained, TextsMatchAloneTogetherAndWithDrafts) {
    Tales& t = Tales::get();
    const auto grammar = Constraint::regex("([0-9]{3}, ){4}[a-f]+\\.", trie());
    std::vector<std::string> first;
    for (const int drafts : {0, 5}) {
        Generator g(t.model, t.tokenizer, *t.device, {.max_drafts = drafts, .ngram = {.least = 1}});
        std::vector<JobHandle> jobs;
        for (uint64_t i = 0; i < 5; ++i)
            jobs.push_back(g.submit(constrained(hold(grammar), 200, i)));
        for (size_t i = 0; i < jobs.size(); ++i) {
            const Outcome o = wait_for(jobs[i]);
            ASSERT_TRUE(o.result.end == JobEnd::constraint || o.result.end == JobEnd::stop_token);
            EXPECT_EQ(o.text.size() > 21 && o.text.back() == '.', true) << o.text;
            if (drafts == 0)
                first.push_back(o.text);
            else
                EXPECT_EQ(o.text, first[i]);
        }
    }
}

TEST(Constrained, BannedStringsInsideAGrammar) {
    Tales& t = Tales::get();
    const auto grammar =
        Constraint::regex("(one|two|three), (one|two|three), (one|two|three)", trie());
    Generator g(t.model, t.tokenizer, *t.device, {});
    for (uint64_t seed = 0; seed < 6; ++seed) {
        JobRequest r = constrained(hold(grammar), 100, seed);
        r.banned_strings = {"TWO", "three"};
        JobHandle job = g.submit(std::move(r));
        EXPECT_EQ(wait_for(job).text, "one, one, one");
    }
}

TEST(Constrained, TheGrammarHoldsAfterTheTokenThatStartsIt) {
    Tales& t = Tales::get();
    const auto grammar = Constraint::regex("12345", trie());
    const auto close = t.tokenizer.encode(".", {.add_special = false}).back();
    Generator g(t.model, t.tokenizer, *t.device, {});
    JobHandle job = g.submit(constrained(hold(grammar, {.tokens = {close}}), 200, 3));
    const Outcome o = wait_for(job);
    EXPECT_TRUE(o.text.ends_with("12345")) << o.text;
    EXPECT_NE(o.text.find('.'), std::string::npos) << o.text;
    JobRequest both = constrained(hold(grammar), 5, 1);
    both.token_healing = true;
    EXPECT_THROW(g.submit(std::move(both)), Error);
}

}  // namespace
}  // namespace exl3::test
