#include <cstring>

#include "io/safetensors.h"
#include "support/golden.h"
#include "support/logits_of.h"
#include "support/temp_folder.h"

namespace exl3::test {
namespace {

std::string some_ids(int n, int vocab) {
    Json ids = Json::array();
    for (int i = 0; i < n; ++i) ids.push_back((i * 141 + 1) % vocab);
    return ids.dump();
}

TEST(Logits, ChunksAndDevicesAgreeWithOnePass) {
    const std::string ids = some_ids(18, 4096);
    const Logits whole = logits_of(tales(), ids);
    ASSERT_EQ(whole.dims, (std::vector<int64_t>{18, 4096}));
    const std::vector<std::vector<std::string>> ways = {{"--chunk", "1"},
                                                        {"--chunk", "7"},
                                                        {"--chunk", "500"},
                                                        {"--device", "ref"},
                                                        {"--threads", "1"}};
    for (const auto& how : ways) {
        const Logits other = logits_of(tales(), ids, how);
        ASSERT_EQ(other.dims, whole.dims);
        EXPECT_LT(relative_error(other.values.data(), whole.values.data(), whole.values.size()),
                  2e-3)
            << how[0] << " " << how[1];
    }
}

// A token is attended to as the cache keeps it, so pieces do not change what a quantized cache
// gives.
TEST(Logits, QuantizedCacheInPiecesAndByBits) {
    const std::string ids = some_ids(40, 4096);
    const Logits exact = logits_of(tales(), ids);
    double before = 1;
    for (const std::string bits : {"3,2", "4", "6,5", "8"}) {
        const Logits whole = logits_of(tales(), ids, {"--kv-bits", bits});
        for (const char* chunk : {"1", "7"}) {
            const Logits parts = logits_of(tales(), ids, {"--kv-bits", bits, "--chunk", chunk});
            EXPECT_LT(relative_error(parts.values.data(), whole.values.data(), whole.values.size()),
                      5e-3)
                << bits << " bits in pieces of " << chunk;
        }
        const double error =
            relative_error(whole.values.data(), exact.values.data(), exact.values.size());
        EXPECT_LT(error, before) << bits;
        EXPECT_GT(error, 0) << bits;
        before = error;
    }
    EXPECT_LT(before, 1e-2);
}

TEST(Logits, Exl3ModelsGiveTheLogitsOfTheirDecodedWeights) {
    const auto folder = golden_dir() / "exl3-models";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no golden data";
    const Json manifest = load_json(golden_dir() / "tiny-models/manifest.json");
    const SafetensorsFile wanted = SafetensorsFile::open(folder / "logits.safetensors").value();
    for (const std::string name : {"LlamaForCausalLM-4.0bpw-mul1", "LlamaForCausalLM-3.0bpw-3inst",
                                   "Phi3ForCausalLM-5.0bpw-mul1", "Qwen3ForCausalLM-4.0bpw-mul1"}) {
        const Logits got =
            logits_of((folder / name).string(), manifest.at("ids").dump(), {"--chunk", "32"});
        const TensorInfo* info = wanted.find(name + ".dequantized_fp32");
        ASSERT_NE(info, nullptr);
        const auto vocab = static_cast<size_t>(got.dims[1]);
        std::vector<float> want(static_cast<size_t>(info->numel())), ours;
        std::memcpy(want.data(), wanted.view(*info).data, info->bytes);
        for (const Json& p : manifest.at("positions")) {
            const auto row = got.values.begin() + static_cast<int64_t>(p.get<size_t>() * vocab);
            ours.insert(ours.end(), row, row + static_cast<int64_t>(vocab));
        }
        ASSERT_EQ(ours.size(), want.size());
        EXPECT_LT(relative_error(ours.data(), want.data(), want.size()), 5e-3) << name;
    }
}

TEST(Logits, RefusesIdsOutsideTheVocabularyAndKeepsTheOldFile) {
    const TempFolder folder;
    const std::string out = folder.write("out.safetensors", "old").string();
    const std::vector<std::string> args = {"logits", "-m", tales(), "--ids", "-", "-o", out};
    const Finished high = exl3(args, "[1, 2, 4096]");
    EXPECT_EQ(high.status, 1);
    EXPECT_NE(high.err.find("stdin: entry 2: found token id 4096, needed 0 to 4095"),
              std::string::npos)
        << high.err;
    EXPECT_EQ(exl3(args, "[]").status, 1);
    EXPECT_EQ(read_file(out).value(), "old");
    EXPECT_EQ(folder.entries(), 1u);
}

}  // namespace
}  // namespace exl3::test
