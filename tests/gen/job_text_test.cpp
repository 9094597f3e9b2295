// What jobs ask of their text: stops, bans, healing, constraints, probabilities.
#include <gtest/gtest.h>

#include <cmath>

#include "support/tales.h"

namespace exl3::test {
namespace {

JobRequest request(const std::string& prompt, int64_t n,
                   SamplerParams params = {.temperature = 0}) {
    Tales& t = Tales::get();
    return {.prompt = t.tokenizer.encode(prompt),
            .max_new_tokens = n,
            .sampler = t.sampler(std::move(params)),
            .seed = 7};
}

Outcome run(JobRequest r, GeneratorOptions o = {}) {
    Tales& t = Tales::get();
    Generator g(t.model, t.tokenizer, *t.device, o);
    JobHandle job = g.submit(std::move(r));
    return wait_for(job);
}

constexpr const char* kPrompt = "Once upon a time, there was a little girl named";

TEST(JobText, StopStringsEndTheTextBeforeThem) {
    const std::string plain = run(request(kPrompt, 60)).text;
    for (const size_t at : {size_t{0}, plain.size() / 3, plain.size() - 9}) {
        const std::string stop = plain.substr(at, 8);
        JobRequest r = request(kPrompt, 60);
        r.stop.strings = {"no such text", stop, stop + "zzz"};
        const Outcome o = run(std::move(r));
        EXPECT_EQ(o.text, plain.substr(0, plain.find(stop)));
        EXPECT_EQ(o.result.end, JobEnd::stop_string);
        EXPECT_EQ(o.result.stop_string, stop);
        EXPECT_LE(o.tokens.size(), static_cast<size_t>(o.result.new_tokens));
    }
}

TEST(JobText, AStopStringAtTheLastTokenCounts) {
    const std::string plain = run(request(kPrompt, 20)).text;
    JobRequest r = request(kPrompt, 20);
    r.stop.strings = {plain.substr(plain.size() - 3)};
    const Outcome o = run(std::move(r));
    EXPECT_EQ(o.result.end, JobEnd::stop_string);
    EXPECT_EQ(o.text, plain.substr(0, plain.find(o.result.stop_string)));
}

TEST(JobText, WhatIsHeldAtTheEndIsReleased) {
    const std::string plain = run(request(kPrompt, 20)).text;
    JobRequest r = request(kPrompt, 20);
    r.stop.strings = {plain.substr(plain.size() - 5) + "something that does not come"};
    EXPECT_EQ(run(std::move(r)).text, plain);
}

TEST(JobText, StopTokensEndAndAreMaskedBeforeTheLeastLength) {
    Tales& t = Tales::get();
    const Outcome plain = run(request(kPrompt, 40));
    const std::vector<int32_t> ids = plain.ids();
    JobRequest r = request(kPrompt, 40);
    r.stop.tokens = {ids[9], 4000, ids[5]};
    const Outcome o = run(r);
    const size_t first =
        static_cast<size_t>(std::find_if(ids.begin(), ids.end(),
                                         [&](int32_t id) { return id == ids[9] || id == ids[5]; }) -
                            ids.begin());
    EXPECT_EQ(o.result.end, JobEnd::stop_token);
    EXPECT_EQ(o.result.stop_token, ids[first]);
    EXPECT_EQ(o.result.new_tokens, static_cast<int64_t>(first) + 1);
    EXPECT_EQ(o.ids(), std::vector<int32_t>(ids.begin(), ids.begin() + static_cast<long>(first)));
    EXPECT_EQ(o.text, t.tokenizer.decode(o.ids(), {.continues = true}));
    r.min_new_tokens = 30;
    const Outcome longer = run(std::move(r));
    EXPECT_GE(longer.result.new_tokens, 31);
    for (const int32_t id : longer.ids()) EXPECT_TRUE(id != ids[9] && id != ids[5]);
}

TEST(JobText, BannedStringsNeverAppearAndNothingElseChanges) {
    const Outcome plain = run(request(kPrompt, 80));
    // A word of the text, in other letters.
    const size_t from = plain.text.find(' ', 20) + 1;
    std::string word = plain.text.substr(from, plain.text.find(' ', from) - from);
    const std::string written = word;
    for (char& c : word) c = static_cast<char>(std::toupper(c));
    JobRequest r = request(kPrompt, 80);
    r.banned_strings = {"no such words", word, ""};
    const Outcome o = run(std::move(r));
    EXPECT_EQ(o.text.find(written), std::string::npos) << o.text;
    EXPECT_EQ(o.result.new_tokens, 80);
    EXPECT_EQ(o.tokens.size(), 80u);
    // Up to the banned word both go the same way.
    EXPECT_EQ(o.text.substr(0, from - 1), plain.text.substr(0, from - 1));
    EXPECT_EQ(o.text, Tales::get().tokenizer.decode(o.ids(), {.continues = true}));
}

TEST(JobText, BansWorkAcrossPagesAndWhereEverythingIsBanned) {
    // 250 tokens of prompt: the text goes over the end of the first page.
    Tales& t = Tales::get();
    JobRequest r = request("", 40);
    r.prompt = t.tokens(0, 250);
    const std::string plain = run(r).text;
    for (const char letter : std::string("aeiou")) {
        JobRequest banned = r;
        banned.banned_strings = {std::string(1, letter)};
        const Outcome o = run(std::move(banned));
        EXPECT_EQ(o.text.find(letter), std::string::npos) << o.text;
        EXPECT_EQ(o.result.new_tokens, 40);
    }
    // Only one token may be drawn, and it is banned: it has to pass.
    JobRequest forced = request(kPrompt, 5, {.temperature = 0, .allowed_tokens = {300}});
    forced.banned_strings = {t.tokenizer.bytes_of(300)};
    const Outcome o = run(std::move(forced));
    EXPECT_EQ(o.result.end, JobEnd::max_new_tokens);
    EXPECT_EQ(o.result.new_tokens, 5);
}

TEST(JobText, TokenHealingReplacesTheLastTokenOfThePrompt) {
    Tales& t = Tales::get();
    JobRequest r = request("Once upon a ti", 8);
    const std::string removed = t.tokenizer.bytes_of(r.prompt.back());
    r.token_healing = true;
    const Outcome healed = run(r);
    EXPECT_EQ(healed.result.new_tokens, 8);
    EXPECT_EQ(healed.tokens.size(), 9u);
    EXPECT_TRUE(t.tokenizer.bytes_of(healed.tokens[0].id).starts_with(removed));
    EXPECT_EQ(removed + healed.text, t.tokenizer.decode(healed.ids(), {.continues = true}));
    EXPECT_EQ(healed.result.prompt_tokens, static_cast<int64_t>(r.prompt.size()));
}

TEST(JobText, LogprobsComeWithTheirTokens) {
    const Outcome o = run(request(kPrompt, 12, {.temperature = 0, .logprobs = 3}));
    ASSERT_EQ(o.tokens.size(), 12u);
    for (const JobToken& t : o.tokens) {
        ASSERT_EQ(t.top.size(), 3u);
        EXPECT_EQ(t.top[0].token, t.id);
        EXPECT_EQ(t.top[0].logprob, t.logprob);
        EXPECT_GE(t.top[1].logprob, t.top[2].logprob);
        EXPECT_LE(t.logprob, 0);
    }
    int64_t offset = 0;
    for (const JobToken& t : o.tokens) {
        EXPECT_EQ(t.text_offset, offset);
        offset += static_cast<int64_t>(Tales::get().tokenizer.bytes_of(t.id).size());
    }
}

TEST(JobText, LogitBiasForcesAToken) {
    const Outcome o = run(request(kPrompt, 4, {.temperature = 1, .logit_bias = {{321, 100.0}}}));
    for (const int32_t id : o.ids()) EXPECT_EQ(id, 321);
}

TEST(JobText, ALoopEndsTheJobIfAskedTo) {
    JobRequest r = request(kPrompt, 500, {.temperature = 0, .allowed_tokens = {300, 301}});
    r.loop = {.window = 24, .repetitions = 3};
    const Outcome o = run(std::move(r));
    EXPECT_EQ(o.result.end, JobEnd::loop);
    EXPECT_LT(o.result.new_tokens, 100);
}

TEST(JobText, AJobThatFailsLeavesTheOthersAlone) {
    Tales& t = Tales::get();
    const Outcome alone = run(request(kPrompt, 50));
    Generator g(t.model, t.tokenizer, *t.device, {});
    JobHandle good = g.submit(request(kPrompt, 50));
    SamplerParams nothing{.temperature = 1, .banned_tokens = {5}, .allowed_tokens = {5}};
    JobHandle bad = g.submit(request(kPrompt, 50, nothing));
    const Outcome failed = wait_for(bad);
    EXPECT_EQ(failed.result.end, JobEnd::error);
    ASSERT_TRUE(failed.result.error);
    EXPECT_EQ(failed.result.error->code(), Errc::invalid_argument);
    EXPECT_EQ(wait_for(good).text, alone.text);
    EXPECT_EQ(g.stats().jobs_failed, 1);
    EXPECT_TRUE(g.stats().healthy);
}

}  // namespace
}  // namespace exl3::test
