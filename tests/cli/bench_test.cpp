#include "support/program.h"

namespace exl3::test {
namespace {

TEST(Bench, MeasuresEveryCombinationAsked) {
    const Finished f = exl3({"bench", "-m", tales(), "--context", "0,300", "--batch", "1,3",
                             "--prefill", "5,64", "--json"});
    ASSERT_EQ(f.status, 0) << f.err;
    const Json d = f.json();
    ASSERT_EQ(d.at("decode").size(), 4u);
    ASSERT_EQ(d.at("prefill").size(), 2u);
    EXPECT_EQ(d.at("decode")[3].at("context"), 300);
    EXPECT_EQ(d.at("decode")[3].at("batch"), 3);
    for (const Json& step : d.at("decode")) {
        const double seconds = step.at("seconds").get<double>();
        EXPECT_GT(seconds, 0);
        EXPECT_NEAR(step.at("tps").get<double>(), step.at("batch").get<double>() / seconds, 1e-3);
        EXPECT_NEAR(step.at("share_of_copy").get<double>(),
                    step.at("gbps").get<double>() / d.at("copy_gbps").get<double>(), 1e-6);
    }
    EXPECT_EQ(d.at("weight_bytes"), 17836544);
    EXPECT_GT(d.at("memory_bytes").get<uint64_t>(), 17836544u);
    EXPECT_GT(d.at("load_seconds").get<double>(), 0);
}

TEST(Bench, NeedsExactlyOneSubject) {
    EXPECT_EQ(exl3({"bench"}).status, 2);
    EXPECT_EQ(exl3({"bench", "-m", tales(), "--quantize"}).status, 2);
    EXPECT_EQ(exl3({"bench", "--synthetic", "nomodel"}).status, 2);
}

}  // namespace
}  // namespace exl3::test
