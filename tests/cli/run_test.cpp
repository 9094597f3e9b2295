#include <algorithm>

#include "support/logits_of.h"

namespace exl3::test {
namespace {

std::vector<std::string> run_args(const std::vector<std::string>& more) {
    std::vector<std::string> args = {"run", "-m", tales(), "--raw", "-p", "Once upon a time"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
}

TEST(Run, StreamsExactlyWhatJsonReports) {
    const Finished plain = exl3(run_args({"-n", "20", "--greedy"}));
    ASSERT_EQ(plain.status, 0) << plain.err;
    EXPECT_NE(plain.err.find("tokens/s"), std::string::npos);
    const Json d = exl3(run_args({"-n", "20", "--greedy", "--json"})).json();
    EXPECT_EQ(d.at("text"), plain.out);
    EXPECT_EQ(d.at("prompt_tokens"), 4);
    EXPECT_EQ(d.at("new_tokens"), 20);
    EXPECT_EQ(d.at("stop_reason"), "max_new_tokens");
    EXPECT_GT(d.at("prefill_tps").get<double>(), 0);
    EXPECT_GT(d.at("decode_tps").get<double>(), 0);
    EXPECT_EQ(
        exl3({"run", "-m", tales(), "-p", "-", "-n", "20", "--greedy"}, "Once upon a time").out,
        plain.out);
}

TEST(Run, GreedyTakesTheBestLogitOfEachStep) {
    const Json prompt = exl3({"tokenize", "-m", tales(), "--text", "Once upon a time"}).json();
    const Json text = exl3(run_args({"-n", "6", "--greedy", "--json"})).json();
    const Json ids = exl3({"tokenize", "-m", tales(), "--text",
                           "Once upon a time" + text.at("text").get<std::string>()})
                         .json();
    ASSERT_EQ(ids.size(), prompt.size() + 6);
    const std::vector<float> rows = logits_of(tales(), ids.dump()).values;
    for (size_t i = prompt.size() - 1; i + 1 < ids.size(); ++i) {
        const auto row = rows.begin() + static_cast<int64_t>(i * 4096);
        EXPECT_EQ(std::max_element(row, row + 4096) - row, ids[i + 1].get<int64_t>());
    }
}

TEST(Run, ASeedFixesTheText) {
    const auto text = [](const std::string& seed) {
        return exl3(run_args({"-n", "16", "--temperature", "1", "--seed", seed})).out;
    };
    EXPECT_EQ(text("7"), text("7"));
    EXPECT_NE(text("7"), text("8"));
}

TEST(Run, CountsNewTokensExactly) {
    for (const int n : {0, 1, 2, 17}) {
        const Json d = exl3(run_args({"-n", std::to_string(n), "--ignore-eos", "--json"})).json();
        EXPECT_EQ(d.at("new_tokens"), n);
        EXPECT_EQ(d.at("text").get<std::string>().empty(), n == 0);
    }
}

TEST(Run, StopsBeforeAStopStringWhereverTokensCutIt) {
    const std::string text = exl3(run_args({"-n", "30", "--greedy"})).out;
    for (const std::string stop : {"girl", "a little", "e girl n", ". "}) {
        const size_t at = text.find(stop);
        ASSERT_NE(at, std::string::npos) << stop << " in " << text;
        const Json d = exl3(run_args({"-n", "30", "--greedy", "--json", "--stop", stop, "--stop",
                                      "not in the text"}))
                           .json();
        EXPECT_EQ(d.at("text"), text.substr(0, at));
        EXPECT_EQ(d.at("stop_reason"), "stop_string");
    }
}

TEST(Run, StopsAtAnEndToken) {
    // The end token is made certain, so it is drawn first.
    const Json d = exl3(run_args({"--logit-bias", "0=100", "--json"})).json();
    EXPECT_EQ(d.at("new_tokens"), 1);
    EXPECT_EQ(d.at("text"), "");
    EXPECT_EQ(d.at("stop_reason"), "stop_token");
    EXPECT_EQ(exl3(run_args({"--logit-bias", "0=100", "--ignore-eos", "-n", "3", "--json"}))
                  .json()
                  .at("new_tokens"),
              3);
}

TEST(Run, RefusesSettingsOutOfRange) {
    const Finished f = exl3(run_args({"--temperature", "99"}));
    EXPECT_EQ(f.status, 1);
    EXPECT_NE(f.err.find("temperature: found 99"), std::string::npos) << f.err;
    EXPECT_EQ(exl3({"run", "-m", tales(), "-p", ""}).status, 1);
    EXPECT_EQ(exl3(run_args({"-n", "-1"})).status, 2);
}

TEST(Run, AnInterruptEndsTheTextCleanly) {
    Program p(run_args({"-n", "100000", "--ignore-eos"}));
    p.wait_for_output(20);
    p.signal(SIGINT);
    const Finished f = p.finish();
    EXPECT_EQ(f.status, 130);
    EXPECT_GE(f.out.size(), 20u);
    EXPECT_NE(f.err.find("interrupted\n"), std::string::npos) << f.err;
}

TEST(Run, AReaderThatGoesAwayEndsIt) {
    Program p(run_args({"-n", "100000", "--ignore-eos"}));
    p.wait_for_output(1);
    p.close_output();
    const Finished f = p.finish();
    EXPECT_EQ(f.status, 1);
    EXPECT_NE(f.err.find("error: stdout"), std::string::npos) << f.err;
}

TEST(Run, AnswersInTheFormThatIsAskedFor) {
    const Json d =
        exl3(run_args({"-n", "80", "--json", "--json-schema",
                       R"({"type": "object", "properties": {"mood": {"enum": ["glad", "sad"]},
                                      "age": {"type": "integer", "minimum": 1, "maximum": 99}}, "required": ["mood", "age"]})"}))
            .json();
    EXPECT_EQ(d.at("stop_reason"), "constraint");
    const Json answer = parse_json(d.at("text").get<std::string>(), "answer").value();
    EXPECT_TRUE(answer.at("mood") == "glad" || answer.at("mood") == "sad");
    EXPECT_LE(answer.at("age").get<int>(), 99);
    EXPECT_EQ(exl3(run_args({"-n", "9", "--regex", "ab+c", "--seed", "1"})).out.substr(0, 2), "ab");
    EXPECT_EQ(exl3(run_args({"--grammar", "root ::= \"yes\""})).out, "yes");
    EXPECT_EQ(exl3(run_args({"--grammar", "start: \"no\""})).out, "no");
    const Finished bad = exl3(run_args({"--json-schema", R"({"not": {}})"}));
    EXPECT_EQ(bad.status, 1);
    EXPECT_NE(bad.err.find("keyword 'not' is not supported"), std::string::npos) << bad.err;
    EXPECT_EQ(exl3(run_args({"--regex", "a", "--grammar", "start: \"b\""})).status, 2);
}

}  // namespace
}  // namespace exl3::test
