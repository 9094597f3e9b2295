#include <cmath>

#include "gen/log_softmax.h"
#include "support/golden.h"
#include "support/logits_of.h"

namespace exl3::test {
namespace {

std::string valid_text() {
    return tales() + "/valid.txt";
}

TEST(LogSoftmax, IsExactForWhatCanBeCountedByHand) {
    const std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(5.0f)};
    LogSoftmax p;
    p.set(logits);
    ASSERT_TRUE(p.finite());
    EXPECT_EQ(p.best(), 2);
    EXPECT_NEAR(p.log_p(0), std::log(1.0 / 8), 1e-7);
    const std::vector<float> uniform = {7, 7, 7};
    LogSoftmax q;
    q.set(uniform);
    double want = 0;
    for (const double x : {1.0, 2.0, 5.0}) want += x / 8 * std::log(x / 8 * 3);
    EXPECT_NEAR(kl_divergence(p, q), want, 1e-7);
    EXPECT_EQ(kl_divergence(p, p), 0);
    const std::vector<float> broken = {1, NAN, 2};
    q.set(broken);
    EXPECT_FALSE(q.finite());
}

TEST(EvalPpl, CountsWhatTheConventionsSay) {
    const std::vector<std::string> base = {"eval",   "ppl",        "-m",    tales(),
                                           "--text", valid_text(), "--ctx", "64",
                                           "--rows", "3",          "--json"};
    const Json plain = exl3(base).json();
    EXPECT_EQ(plain.at("tokens"), 3 * 63);
    EXPECT_EQ(plain.at("rows"), 3);
    EXPECT_EQ(plain.at("convention"), "exl3");
    EXPECT_EQ(plain.at("nonfinite"), 0);
    EXPECT_GT(plain.at("ppl").get<double>(), 5);
    EXPECT_LT(plain.at("ppl").get<double>(), 80);
    EXPECT_GT(plain.at("stderr").get<double>(), 0);

    auto gguf = base;
    gguf.insert(gguf.end(), {"--convention", "gguf"});
    // Positions 32 .. 62 of each row.
    EXPECT_EQ(exl3(gguf).json().at("tokens"), 3 * 31);
}

TEST(EvalPpl, AgreesWithTheLogitsCommand) {
    const TempFolder folder;
    const std::string text = read_file(valid_text()).value().substr(0, 4000);
    const std::string file = folder.write("text", text).string();
    Json ids = exl3({"tokenize", "-m", tales(), "--text-file", file, "--no-special"}).json();
    ASSERT_GT(ids.size(), 200u);
    ids.erase(ids.begin() + 100, ids.end());
    const std::vector<float> rows = logits_of(tales(), ids.dump()).values;
    double nll = 0;
    for (size_t i = 0; i + 1 < 100; ++i) {
        LogSoftmax p;
        p.set({rows.data() + i * 4096, 4096});
        nll -= p.log_p(ids[i + 1].get<int32_t>());
    }
    const Json got = exl3({"eval", "ppl", "-m", tales(), "--text", file, "--ctx", "100", "--rows",
                           "1", "--json"})
                         .json();
    EXPECT_NEAR(got.at("ppl").get<double>(), std::exp(nll / 99), 1e-3);
}

TEST(EvalKld, OfAModelWithItselfIsTheNoiseFloor) {
    const Json d = exl3({"eval", "kld", "-m", tales(), "--ref", tales(), "--text", valid_text(),
                         "--ctx", "64", "--rows", "2", "--json"})
                       .json();
    EXPECT_EQ(d.at("tokens"), 2 * 64);
    EXPECT_LT(d.at("mean").get<double>(), 1e-6);
    EXPECT_LT(d.at("noise_floor").get<double>(), 1e-4);
    EXPECT_EQ(d.at("top1"), 1.0);
    EXPECT_EQ(d.at("ppl"), d.at("ppl_ref"));
    for (const char* key : {"stderr", "median", "p90", "p99", "nonfinite"})
        EXPECT_TRUE(d.at(key).is_number()) << key;
}

TEST(EvalPpl, RefusesATextShorterThanOneRow) {
    const TempFolder folder;
    const std::string file = folder.write("text", "Once upon a time").string();
    const Finished f = exl3({"eval", "ppl", "-m", tales(), "--text", file});
    EXPECT_EQ(f.status, 1);
    EXPECT_NE(f.err.find("needed at least one row of 2048"), std::string::npos) << f.err;
}

}  // namespace
}  // namespace exl3::test
