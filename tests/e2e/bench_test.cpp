#include "arch/arch.h"
#include "gen/session.h"
#include "quant/synthetic.h"
#include "ref/ref.h"
#include "support/program.h"

namespace exl3::test {
namespace {

TEST(Synthetic, IsACheckpointOfTheBitsAskedFor) {
    const Checkpoint c =
        synthetic_checkpoint({.model = "llama8b", .bits = 3, .head_bits = 5, .codebook = kMcg});
    const ModelSpec spec = describe(c);
    EXPECT_EQ(spec.blocks.size(), 32u);
    const auto gate = linears_of(spec.blocks[31], spec.hidden)[4];
    const Exl3Matrix m = read_exl3(c, gate);
    EXPECT_EQ(m.bits, 3);
    EXPECT_EQ(m.codebook, kMcg);
    EXPECT_EQ(m.k, 4096);
    EXPECT_EQ(m.n, 14336);
    EXPECT_EQ(c.find("lm_head.trellis").info->dims.back(), 16 * 5);
}

TEST(Bench, RunsAModelThatNoFileHolds) {
    const Finished f = exl3({"bench", "--synthetic", "llama1b", "--bits", "2", "--head-bits", "2",
                             "--prefill", "2", "--json"});
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_GT(f.json().at("decode")[0].at("tps").get<double>(), 0);
}

TEST(Bench, MeasuresConversion) {
    const Finished f = exl3({"bench", "--quantize", "--bits", "2", "--json"});
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_GT(f.json().at("encode_weights_per_second").get<double>(), 0);
    EXPECT_GT(f.json().at("matrix_weights_per_second").get<double>(), 0);
    // Two bits code a normal variable with an error of 0.06 to 0.08 (quantizer tables).
    EXPECT_LT(f.json().at("encode_mse").get<double>(), 0.1);
    EXPECT_LT(f.json().at("matrix_proxy_err").get<double>(), 0.1);
}

}  // namespace
}  // namespace exl3::test
