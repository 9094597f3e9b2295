#include "support/golden.h"
#include "support/logits_of.h"

namespace exl3::test {
namespace {

namespace fs = std::filesystem;

class Dequantize : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        if (!fs::exists(model())) GTEST_SKIP() << "no golden data";
    }
    fs::path model() const { return golden_dir() / "exl3-models" / GetParam(); }
    // Runs the command; returns the new folder.
    std::string plain(const std::vector<std::string>& more) {
        const std::string out = (folder_ / ("plain" + std::to_string(++count_))).string();
        std::vector<std::string> args = {"dequantize", "-m", model().string(), "-o", out};
        args.insert(args.end(), more.begin(), more.end());
        const Finished f = exl3(args);
        EXPECT_EQ(f.status, 0) << f.err;
        EXPECT_EQ(f.out, "");
        return out;
    }
    TempFolder folder_;
    int count_ = 0;
};

TEST_P(Dequantize, TheResultGivesTheSameLogits) {
    // On the reference device both models are computed in double, so only the weights and what f16
    // keys and values make of the last bits differ.
    const std::string ids = "[1, 347, 206, 66, 405, 264, 124, 463]";
    const std::vector<std::string> exactly = {"--device", "ref"};
    const Logits want = logits_of(model().string(), ids, exactly);
    const std::vector<std::pair<std::string, double>> cases = {
        {"f32", 5e-4}, {"f16", 2e-3}, {"bf16", 2e-2}};
    for (const auto& [dtype, tolerance] : cases) {
        const std::string out = plain({"--dtype", dtype});
        const Logits got = logits_of(out, ids, exactly);
        ASSERT_EQ(got.dims, want.dims);
        EXPECT_LT(relative_error(got.values.data(), want.values.data(), want.values.size()),
                  tolerance)
            << dtype;
        const Json checked = exl3({"inspect", out, "--check", "--json"}).json();
        EXPECT_TRUE(checked.at("check").at("ok")) << checked.dump();
        EXPECT_EQ(checked.at("format"), "plain");
        EXPECT_FALSE(load_json(fs::path(out) / "config.json").contains("quantization_config"));
        EXPECT_TRUE(fs::exists(fs::path(out) / "tokenizer.json"));
        EXPECT_FALSE(fs::exists(fs::path(out) / "quantization_config.json"));
    }
}

TEST_P(Dequantize, ShardsHoldTheSameTensors) {
    const auto tensors = [](const std::string& folder) {
        Json all = exl3({"inspect", folder, "--tensors", "--json"}).json().at("tensors");
        for (Json& t : all) t.erase("file");
        return all;
    };
    const std::string one = plain({}), many = plain({"--shard-size", "1"});
    EXPECT_TRUE(fs::exists(fs::path(many) / "model.safetensors.index.json"));
    EXPECT_FALSE(fs::exists(fs::path(one) / "model.safetensors.index.json"));
    EXPECT_EQ(tensors(one), tensors(many));
}

INSTANTIATE_TEST_SUITE_P(Models, Dequantize,
                         testing::Values("LlamaForCausalLM-3.0bpw-3inst",
                                         "Phi3ForCausalLM-5.0bpw-mul1",
                                         "Qwen3ForCausalLM-4.0bpw-mul1"),
                         [](const auto& info) {
                             return info.param.substr(0, info.param.find('F'));
                         });

TEST(DequantizeErrors, LeaveNothingBehind) {
    const TempFolder folder;
    const std::string out = (folder / "plain").string();
    const Finished plain_source = exl3({"dequantize", "-m", tales(), "-o", out});
    EXPECT_EQ(plain_source.status, 1);
    EXPECT_NE(plain_source.err.find("no EXL3 matrix"), std::string::npos) << plain_source.err;
    EXPECT_EQ(folder.entries(), 0u);

    const fs::path model = golden_dir() / "exl3-models/LlamaForCausalLM-3.0bpw-3inst";
    if (!fs::exists(model)) GTEST_SKIP() << "no golden data";
    folder.write("plain", "a file that stands in the way");
    const Finished taken = exl3({"dequantize", "-m", model.string(), "-o", out});
    EXPECT_EQ(taken.status, 1);
    EXPECT_NE(taken.err.find(out + ": exists already"), std::string::npos) << taken.err;
    EXPECT_EQ(folder.entries(), 1u);
}

}  // namespace
}  // namespace exl3::test
