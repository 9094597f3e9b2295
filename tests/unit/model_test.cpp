#include "model/model.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "arch/arch.h"
#include "base/random.h"
#include "cpu/cpu.h"
#include "gen/session.h"
#include "support/golden.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;

/// A two-layer Llama with random f32 weights, every tensor of which a test may change.
struct TinyLlama {
    std::map<std::string, std::pair<std::vector<int64_t>, std::vector<float>>> tensors;
    Json config = {{"architectures", {"LlamaForCausalLM"}},
                   {"hidden_size", 128},
                   {"num_attention_heads", 2},
                   {"num_key_value_heads", 1},
                   {"num_hidden_layers", 2},
                   {"intermediate_size", 256},
                   {"rms_norm_eps", 1e-5},
                   {"vocab_size", 100},
                   {"max_position_embeddings", 1024},
                   {"tie_word_embeddings", true}};

    TinyLlama() {
        Random random(5);
        const auto add = [&](const std::string& name, std::vector<int64_t> dims) {
            std::vector<float> v(static_cast<size_t>(
                std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>())));
            for (float& x : v) x = static_cast<float>(0.1 * random.normal());
            tensors[name] = {std::move(dims), std::move(v)};
        };
        add("model.embed_tokens.weight", {100, 128});
        add("model.norm.weight", {128});
        for (int i = 0; i < 2; ++i) {
            const std::string at = "model.layers." + std::to_string(i) + ".";
            add(at + "input_layernorm.weight", {128});
            add(at + "post_attention_layernorm.weight", {128});
            add(at + "self_attn.q_proj.weight", {128, 128});
            add(at + "self_attn.k_proj.weight", {64, 128});
            add(at + "self_attn.v_proj.weight", {64, 128});
            add(at + "self_attn.o_proj.weight", {128, 128});
            add(at + "mlp.gate_proj.weight", {256, 128});
            add(at + "mlp.up_proj.weight", {256, 128});
            add(at + "mlp.down_proj.weight", {128, 256});
        }
    }
    void write(const fs::path& folder) const {
        fs::create_directories(folder);
        write_file(folder / "config.json", config.dump());
        std::vector<TensorToWrite> out;
        for (const auto& [name, t] : tensors)
            out.push_back({name, DType::f32, t.first, t.second.data()});
        write_safetensors(folder / "model.safetensors", out);
    }
};

struct Loaded {
    std::unique_ptr<Device> device = cpu::open({.threads = 1});
    std::unique_ptr<Stream> stream = device->make_stream();
    std::unique_ptr<Model> model;
    explicit Loaded(const fs::path& folder) {
        const Checkpoint c = Checkpoint::open(folder);
        model = std::make_unique<Model>(*stream, c, describe(c));
    }
};

std::string load_error(const TinyLlama& m) {
    const test::TempDir dir;
    m.write(dir.path());
    try {
        Loaded loaded(dir.path());
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Model, AMissingTensorIsNamed) {
    const TinyLlama whole;
    EXPECT_EQ(load_error(whole), "");
    for (const auto& [name, t] : whole.tensors) {
        TinyLlama m;
        m.tensors.erase(name);
        EXPECT_NE(load_error(m).find(name), std::string::npos) << name << ": " << load_error(m);
    }
}

TEST(Model, ATensorOfAnotherShapeIsNamedWithBothShapes) {
    for (const auto& [name, t] : TinyLlama().tensors) {
        TinyLlama m;
        m.tensors[name].first.insert(m.tensors[name].first.begin(), 1);
        const std::string what = load_error(m);
        EXPECT_NE(what.find(name), std::string::npos) << what;
        EXPECT_NE(what.find("needs"), std::string::npos) << what;
    }
}

TEST(Model, HugeActivationsDoNotOverflow) {
    // Beyond the range of f16, which holds 65504.
    const test::TempDir dir;
    TinyLlama m;
    for (float& x : m.tensors["model.layers.0.mlp.down_proj.weight"].second) x *= 1e6f;
    m.write(dir.path());
    Loaded l(dir.path());
    Session session(*l.model, *l.stream, {.max_tokens = 16});
    std::vector<float> logits(100);
    const std::vector<int32_t> ids = {1, 2, 3, 4, 5};
    session.feed(ids, logits);
    for (const float x : logits) EXPECT_TRUE(std::isfinite(x));
}

TEST(Session, ChunksAndTruncationDoNotChangeTheLogits) {
    const test::TempDir dir;
    TinyLlama().write(dir.path());
    Loaded l(dir.path());
    std::vector<int32_t> ids(600);
    Random random(1);
    for (int32_t& id : ids) id = static_cast<int32_t>(random.below(100));
    std::vector<float> one(100), chunked(100), again(100);
    Session a(*l.model, *l.stream, {.max_tokens = 600, .chunk = 600});
    a.feed(ids, one);
    Session b(*l.model, *l.stream, {.max_tokens = 600, .chunk = 13});
    b.feed(ids, chunked);
    EXPECT_LT(test::relative_error(chunked.data(), one.data(), 100), 1e-5);
    b.truncate(300);
    b.feed(std::span(ids).subspan(300), again);
    EXPECT_LT(test::relative_error(again.data(), one.data(), 100), 1e-5);
}

TEST(Session, RefusesWhatDoesNotFit) {
    const test::TempDir dir;
    TinyLlama().write(dir.path());
    Loaded l(dir.path());
    Session session(*l.model, *l.stream, {.max_tokens = 4});
    std::vector<float> logits(100);
    EXPECT_THROW(session.feed(std::vector<int32_t>{1, 2, 3, 4, 5}, logits), Error);
    EXPECT_THROW(session.feed(std::vector<int32_t>{100}, logits), Error);
    EXPECT_THROW(session.feed(std::vector<int32_t>{-1}, logits), Error);
    session.feed(std::vector<int32_t>{1, 2, 3, 4}, logits);
}

}  // namespace
}  // namespace exl3
