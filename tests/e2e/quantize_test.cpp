// Conversion through the program: the result loads and writes text, an interrupted conversion goes
// on and ends with the same bytes, and what cannot be converted is refused with nothing left
// behind.
#include <chrono>
#include <cstdio>
#include <thread>

#include "io/safetensors.h"
#include "support/golden.h"
#include "support/program.h"
#include "support/temp_folder.h"

namespace exl3::test {
namespace {

namespace fs = std::filesystem;

std::string bundled() {
    return (source_dir() / "models/tales-9m").string();
}

/// The first layers of the bundled model: these tests look at the machinery, not at quality.
constexpr int kLayers = 3;

const std::string& source() {
    static const TempFolder folder;
    static const std::string path = [] {
        const fs::path out = folder / "short-tales";
        fs::create_directories(out);
        for (const char* name :
             {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
            fs::copy_file(fs::path(bundled()) / name, out / name);
        Json config = load_json(fs::path(bundled()) / "config.json");
        config["num_hidden_layers"] = kLayers;
        write_file(out / "config.json", config.dump());
        const SafetensorsFile file =
            SafetensorsFile::open(fs::path(bundled()) / "model.safetensors").value();
        std::vector<TensorToWrite> kept;
        for (const TensorInfo& t : file.tensors()) {
            int layer = 0;
            if (std::sscanf(t.name.c_str(), "model.layers.%d.", &layer) == 1 && layer >= kLayers)
                continue;
            kept.push_back({t.name, t.dtype, t.dims, file.view(t).data});
        }
        write_safetensors(out / "model.safetensors", kept);
        return out.string();
    }();
    return path;
}

std::vector<std::string> quantize_args(const std::string& out, const std::string& bits = "3") {
    return {"quantize",   "-i",  source(),          "-o", out, "-b", bits, "--cal-rows", "8",
            "--cal-cols", "128", "--distill-steps", "3"};
}

std::vector<std::string> with(std::vector<std::string> args, const std::vector<std::string>& more) {
    args.insert(args.end(), more.begin(), more.end());
    return args;
}

std::string bytes_of(const fs::path& file) {
    return read_file(file).value();
}

size_t parts_in(const fs::path& work) {
    size_t n = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(work, none))
        n += entry.path().filename().string().starts_with("block-") &&
             entry.path().extension() == ".safetensors";
    return n;
}

TEST(Quantize, TheResultLoadsAndWrites) {
    const TempFolder folder;
    const std::string out = (folder / "model").string();
    const Finished f =
        exl3(with(quantize_args(out, "3.5"), {"--head-bits", "6", "--verify", "--json"}));
    ASSERT_EQ(f.status, 0) << f.err;
    const Json report = f.json();
    EXPECT_NEAR(report.at("bpw_layers").get<double>(), 3.5, 0.05);
    EXPECT_EQ(report.at("bpw_head"), 6);
    EXPECT_EQ(report.at("tensors").size(), 7u * kLayers + 1);
    for (const Json& t : report.at("tensors")) {
        EXPECT_GT(t.at("proxy_err").get<double>(), 0);
        EXPECT_LT(t.at("proxy_err").get<double>(), 0.1) << t;
    }
    EXPECT_FALSE(fs::exists(out + ".work"));

    const Json config = load_json(fs::path(out) / "config.json");
    EXPECT_EQ(config.at("quantization_config").at("quant_method"), "exl3");
    const Json storage = load_json(fs::path(out) / "quantization_config.json").at("tensor_storage");
    EXPECT_EQ(storage.at("lm_head").at("bits_per_weight"), 6);
    const Json checked = exl3({"inspect", out, "--check", "--json"}).json();
    EXPECT_TRUE(checked.at("check").at("ok")) << checked.dump();

    const Finished story = exl3(
        {"run", "-m", out, "--raw", "-p", "Once upon a time", "-n", "12", "--greedy", "--json"});
    ASSERT_EQ(story.status, 0) << story.err;
    EXPECT_EQ(story.json().at("new_tokens"), 12);

    const Json kld = exl3({"eval", "kld", "-m", out, "--ref", source(), "--text",
                           bundled() + "/valid.txt", "--ctx", "128", "--rows", "4", "--json"})
                         .json();
    EXPECT_LT(kld.at("mean").get<double>(), 0.1);

    const Json layers = exl3({"eval", "layers", "-m", out, "--ref", source(), "--text",
                              bundled() + "/valid.txt", "--ctx", "64", "--rows", "2", "--json"})
                            .json()
                            .at("layers");
    ASSERT_EQ(layers.size(), kLayers + 1u);
    EXPECT_EQ(layers.front().at("relative_error"), 0);
    EXPECT_GT(layers.back().at("relative_error").get<double>(), 0.01);
    EXPECT_LT(layers.back().at("relative_error").get<double>(), 0.3);

    // Decoded again it is the same model, though its head no longer is its embedding.
    const std::string plain = (folder / "plain").string();
    const Finished decoded = exl3({"dequantize", "-m", out, "-o", plain, "--dtype", "f32"});
    ASSERT_EQ(decoded.status, 0) << decoded.err;
    EXPECT_EQ(load_json(fs::path(plain) / "config.json").at("tie_word_embeddings"), false);
    const Json same = exl3({"eval", "kld", "-m", plain, "--ref", out, "--text",
                            bundled() + "/valid.txt", "--ctx", "128", "--rows", "4", "--json"})
                          .json();
    EXPECT_LT(same.at("mean").get<double>(), 1e-3);
    EXPECT_LT(same.at("noise_floor").get<double>(), 1e-3);
}

TEST(Quantize, TheHeadSharesTheBudgetUnlessItIsPinned) {
    const TempFolder folder;
    const std::string pinned = (folder / "pinned").string(), shared = (folder / "shared").string();
    const Json a = exl3(with(quantize_args(pinned, "2"), {"--head-bits", "6", "--json"})).json();
    const Json b = exl3(with(quantize_args(shared, "2"), {"--json"})).json();
    EXPECT_EQ(a.at("bpw_head"), 6);
    EXPECT_LT(b.at("bpw_head").get<int>(), 6);
    EXPECT_GT(b.at("bpw_layers").get<double>(), 2);
    const double ratio = b.at("bytes").get<double>() / a.at("bytes").get<double>();
    EXPECT_LE(ratio, 1.0005);
    EXPECT_GT(ratio, 0.99);
}

TEST(Quantize, OverridesFixTheBitsOfMatrices) {
    const TempFolder folder;
    const std::string out = (folder / "model").string();
    const Json report =
        exl3(with(quantize_args(out, "2"), {"--fast", "--override", "down_proj$=5", "--override",
                                            "layers.1.*down_proj$=6", "--json"}))
            .json();
    for (const Json& t : report.at("tensors")) {
        const std::string name = t.at("name");
        if (name.find("down_proj") == std::string::npos) continue;
        EXPECT_EQ(t.at("bits"), name.find("layers.1.") == std::string::npos ? 5 : 6) << name;
    }
    const Finished bad = exl3(with(quantize_args(out + "2"), {"--override", "down(=5"}));
    EXPECT_EQ(bad.status, 1);
    EXPECT_NE(bad.err.find("--override"), std::string::npos) << bad.err;
}

TEST(Quantize, GoesOnAfterAKillAndEndsWithTheSameBytes) {
    const TempFolder folder;
    const std::string whole = (folder / "whole").string(), killed = (folder / "killed").string();
    ASSERT_EQ(exl3(quantize_args(whole)).status, 0);
    // Killed with SIGKILL at several places, each later than the one before.
    size_t last = 0;
    for (const size_t stop : {1, 2}) {
        Program program(quantize_args(killed));
        while (parts_in(killed + ".work") < stop) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            ASSERT_FALSE(fs::exists(killed)) << "it ended before it could be killed";
        }
        program.signal(SIGKILL);
        EXPECT_EQ(program.finish().status, -1);
        EXPECT_GE(parts_in(killed + ".work"), std::max(last, stop));
        last = stop;
    }
    const Finished f = exl3(with(quantize_args(killed), {"--json"}));
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_GE(f.json().at("resumed_layers").get<int>(), 2);
    EXPECT_EQ(bytes_of(fs::path(killed) / "model.safetensors"),
              bytes_of(fs::path(whole) / "model.safetensors"));
    EXPECT_FALSE(fs::exists(killed + ".work"));
}

TEST(Quantize, AnInterruptionLeavesWorkThatOtherOptionsMayNotTouch) {
    const TempFolder folder;
    const std::string out = (folder / "model").string();
    Program program(quantize_args(out));
    while (parts_in(out + ".work") < 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    program.signal(SIGINT);
    const Finished interrupted = program.finish();
    EXPECT_EQ(interrupted.status, 130) << interrupted.err;
    EXPECT_FALSE(fs::exists(out));

    const Finished other = exl3(quantize_args(out, "4"));
    EXPECT_EQ(other.status, 1);
    EXPECT_NE(other.err.find("bits"), std::string::npos) << other.err;
    EXPECT_NE(other.err.find("--restart"), std::string::npos) << other.err;
    EXPECT_EQ(exl3(with(quantize_args(out, "4"), {"--restart"})).status, 0);
}

TEST(Quantize, WhatCannotBeConvertedIsRefused) {
    const TempFolder folder;
    const std::string out = (folder / "model").string();
    const auto refused = [&](std::vector<std::string> args, const std::string& because,
                             int status) {
        const Finished f = exl3(args);
        EXPECT_EQ(f.status, status) << because;
        EXPECT_NE(f.err.find(because), std::string::npos) << f.err;
        EXPECT_FALSE(fs::exists(out));
    };
    refused({"quantize", "-i", "/no/such/folder", "-o", out, "-b", "4"}, "/no/such/folder", 1);
    refused({"quantize", "-i", source(), "-o", out, "-b", "9"}, "9", 2);
    refused({"quantize", "-i", source(), "-o", out}, "-b", 2);
    refused({"quantize", "-i", source(), "-o", out, "-b", "4", "--codebook", "mul2"}, "mul2", 2);
    refused({"quantize", "-i", source(), "-o", out, "-b", "4", "--cal-file", "/no/such/text"},
            "/no/such/text", 1);

    const std::string first = (folder / "first").string();
    ASSERT_EQ(exl3(quantize_args(first)).status, 0);
    refused({"quantize", "-i", first, "-o", out, "-b", "4"}, "EXL3 already", 1);
    const Finished again = exl3(quantize_args(first));
    EXPECT_EQ(again.status, 1);
    EXPECT_NE(again.err.find("exists"), std::string::npos) << again.err;
}

TEST(Quantize, SmallShardsHoldTheSameTensors) {
    const TempFolder folder;
    const std::string one = (folder / "one").string(), many = (folder / "many").string();
    ASSERT_EQ(exl3(quantize_args(one)).status, 0);
    ASSERT_EQ(exl3(with(quantize_args(many), {"--shard-size", "1"})).status, 0);
    EXPECT_TRUE(fs::exists(fs::path(many) / "model.safetensors.index.json"));
    const auto tensors = [](const std::string& model) {
        Json all = exl3({"inspect", model, "--tensors", "--json"}).json().at("tensors");
        for (Json& t : all) t.erase("file");
        return all;
    };
    EXPECT_EQ(tensors(one), tensors(many));
}

}  // namespace
}  // namespace exl3::test
