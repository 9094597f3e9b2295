#include <gtest/gtest.h>

#include <algorithm>

#include "io/json.h"
#include "support/gguf_bytes.h"
#include "support/program.h"
#include "support/temp_folder.h"

namespace exl3::test {
namespace {

TEST(ImportGguf, MakesACheckpointThatOtherCommandsRead) {
    const TempFolder folder;
    const std::string gguf = folder.write("m.gguf", tiny_llama_gguf().str()).string();
    const std::string out = (folder / "out").string();
    const Finished f = exl3({"import-gguf", gguf, "-o", out, "--json"});
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(Json::parse(f.out).at("architecture"), "LlamaForCausalLM");
    EXPECT_EQ(Json::parse(f.out).at("tensors"), 11);
    EXPECT_EQ(exl3({"inspect", out, "--check"}).status, 0);
    EXPECT_EQ(exl3({"tokenize", "-m", out, "--text", "abc"}).status, 0);
    const Finished logits =
        exl3({"logits", "-m", out, "--ids", "-", "-o", (folder / "l").string()}, "[0, 1, 2]");
    EXPECT_EQ(logits.status, 0) << logits.err;

    const Finished again = exl3({"import-gguf", gguf, "-o", out});
    EXPECT_EQ(again.status, 1);
    EXPECT_NE(again.err.find("exists already"), std::string::npos) << again.err;
}

TEST(ImportGguf, RefusesWithOneLine) {
    const TempFolder folder;
    const std::string out = (folder / "out").string();
    const auto refused = [&](const std::string& file, int status, const char* says) {
        const Finished f = exl3({"import-gguf", file, "-o", out});
        EXPECT_EQ(f.status, status) << f.err;
        EXPECT_NE(f.err.find(says), std::string::npos) << f.err;
        EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
        EXPECT_FALSE(std::filesystem::exists(out));
    };
    refused((folder / "no.gguf").string(), 1, "no.gguf");
    refused(folder.path().string(), 1, "error: ");
    refused(folder.write("empty.gguf", "").string(), 1, "found no 'GGUF' at the start");
    const std::string whole = tiny_llama_gguf().str();
    refused(folder.write("cut.gguf", whole.substr(0, whole.size() - 700)).string(), 1,
            "tensor 'blk.0");
}

}  // namespace
}  // namespace exl3::test
