#include <cstring>
#include <fstream>

#include "io/safetensors.h"
#include "support/golden.h"
#include "support/program.h"
#include "support/temp_folder.h"

namespace exl3::test {
namespace {

namespace fs = std::filesystem;

TEST(Inspect, DescribesAPlainCheckpoint) {
    const Finished f = exl3({"inspect", tales(), "--tensors", "--check", "--json"});
    ASSERT_EQ(f.status, 0) << f.err;
    const Json d = f.json();
    EXPECT_EQ(d.at("architecture"), "LlamaForCausalLM");
    EXPECT_EQ(d.at("format"), "plain");
    EXPECT_EQ(d.at("layers"), 10);
    EXPECT_EQ(d.at("bpw_decoder"), 16.0);
    EXPECT_EQ(d.at("weights"), 8918272);
    EXPECT_EQ(d.at("tensors").size(), d.at("tensor_count"));
    EXPECT_TRUE(d.at("check").at("ok"));
    EXPECT_FALSE(d.at("memory").empty());
    EXPECT_NE(exl3({"inspect", tales()}).out.find("LlamaForCausalLM"), std::string::npos);
}

class InspectExl3 : public testing::Test {
protected:
    void SetUp() override {
        const fs::path source = golden_dir() / "exl3-models/LlamaForCausalLM-4.0bpw-mul1";
        if (!fs::exists(source)) GTEST_SKIP() << "no golden data";
        for (const auto& entry : fs::directory_iterator(source)) {
            fs::copy(entry.path(), folder_ / entry.path().filename().string());
            fs::permissions(folder_ / entry.path().filename().string(), fs::perms::owner_all);
        }
    }
    // Overwrites bytes of one tensor in the file.
    void damage(const std::string& tensor, uint64_t at, const std::string& bytes) {
        const SafetensorsFile file = SafetensorsFile::open(weights()).value();
        const TensorInfo* info = file.find(tensor);
        ASSERT_NE(info, nullptr) << tensor;
        std::fstream out(weights(), std::ios::in | std::ios::out | std::ios::binary);
        out.seekp(static_cast<std::streamoff>(info->offset + at));
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    fs::path weights() const { return folder_ / "model.safetensors"; }
    std::string folder() const { return folder_.path().string(); }
    TempFolder folder_;
};

TEST_F(InspectExl3, TellsBitsPerWeight) {
    const Json d = exl3({"inspect", folder(), "--json", "--check"}).json();
    EXPECT_EQ(d.at("format"), "exl3");
    EXPECT_EQ(d.at("codebooks"), Json({"mul1"}));
    EXPECT_EQ(d.at("bpw_decoder"), 4.0);
    EXPECT_EQ(
        d.at("bpw_head"),
        load_json(folder_ / "config.json").at("quantization_config").at("head_bits").get<double>());
    EXPECT_TRUE(d.at("check").at("ok"));
}

TEST_F(InspectExl3, CheckFindsValuesThatAreNotFinite) {
    damage("model.layers.1.self_attn.k_proj.suh", 6, {"\x00\x7c", 2});
    damage("model.norm.weight", 4, {"\xff\xff", 2});
    const Finished f = exl3({"inspect", folder(), "--check", "--json"});
    EXPECT_EQ(f.status, 1);
    EXPECT_NE(f.err.find("error: "), std::string::npos);
    const Json check = f.json().at("check");
    EXPECT_FALSE(check.at("ok"));
    const std::string all = check.at("problems").dump();
    EXPECT_NE(all.find("k_proj.suh"), std::string::npos) << all;
    EXPECT_NE(all.find("model.norm.weight"), std::string::npos) << all;
}

TEST_F(InspectExl3, CheckFindsAMarkerWhoseNameIsDamaged) {
    // Without its marker a matrix decodes with another codebook, and nothing else would tell.
    std::string bytes = read_file(weights()).value();
    for (const auto& [good, bad] :
         {std::pair<std::string, std::string>{"layers.1.mlp.up_proj.mul1",
                                              "layers.1.mlp.up_proj.mul0"},
          {"layers.0.self_attn.v_proj.mul1", "layers.0.self_attn.w_proj.mul1"}}) {
        std::string damaged = bytes;
        damaged.replace(damaged.find(good), good.size(), bad);
        folder_.write("model.safetensors", damaged);
        const Finished f = exl3({"inspect", folder(), "--check"});
        EXPECT_EQ(f.status, 1);
        EXPECT_NE(f.err.find(bad), std::string::npos) << f.err;
    }
}

TEST_F(InspectExl3, CheckComparesShapesWithTheConfig) {
    Json config = load_json(folder_ / "config.json");
    config["intermediate_size"] = config.at("intermediate_size").get<int>() + 128;
    folder_.write("config.json", config.dump());
    const Finished f = exl3({"inspect", folder(), "--check"});
    EXPECT_EQ(f.status, 1);
    EXPECT_NE(f.err.find("mlp.gate_proj"), std::string::npos) << f.err;
}

TEST_F(InspectExl3, NamesAnUnknownArchitecture) {
    Json config = load_json(folder_ / "config.json");
    config["architectures"] = {"MadeUpForCausalLM"};
    folder_.write("config.json", config.dump());
    const Finished shown = exl3({"inspect", folder(), "--json"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_EQ(shown.json().at("known"), false);
    const Finished checked = exl3({"inspect", folder(), "--check"});
    EXPECT_EQ(checked.status, 1);
    EXPECT_NE(checked.err.find("MadeUpForCausalLM"), std::string::npos) << checked.err;
}

TEST_F(InspectExl3, ATruncatedFileIsAnErrorThatNamesIt) {
    fs::resize_file(weights(), fs::file_size(weights()) - 1000);
    const Finished f = exl3({"inspect", folder()});
    EXPECT_EQ(f.status, 1);
    EXPECT_NE(f.err.find(weights().string()), std::string::npos) << f.err;
}

TEST(Doctor, KnowsThisMachine) {
    const Finished f = exl3({"doctor", "--json"});
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_GT(f.json().at("usable_cores").get<int>(), 0);
    EXPECT_GT(f.json().at("memory_total").get<uint64_t>(), 0u);
    EXPECT_EQ(exl3({"doctor"}).status, 0);
}

}  // namespace
}  // namespace exl3::test
