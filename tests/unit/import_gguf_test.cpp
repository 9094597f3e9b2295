#include "import/import_gguf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/log.h"
#include "base/random.h"
#include "import/gguf_family.h"
#include "import/gguf_tokenizer.h"
#include "import/pre_tokenizers.h"
#include "io/checkpoint.h"
#include "io/convert.h"
#include "io/shards.h"
#include "support/gguf_bytes.h"
#include "support/golden.h"
#include "support/temp_folder.h"
#include "text/tokenizer.h"

namespace exl3 {
namespace {

using test::error_of;
using test::GgufBytes;
using test::TempFolder;
using test::tiny_llama_gguf;

class Import : public testing::Test {
protected:
    // Imports these bytes; the folder is made anew each time.
    Checkpoint import(const std::string& bytes, std::optional<DType> dtype = {}) {
        std::filesystem::remove_all(folder_ / "out");
        const auto gguf = folder_.write("m.gguf", bytes);
        report_ = import_gguf(pool_, {.source = gguf, .output = folder_ / "out", .dtype = dtype});
        return Checkpoint::open(folder_ / "out");
    }
    std::string error(const std::string& bytes) {
        const std::string e = error_of([&] { import(bytes); });
        EXPECT_EQ(folder_.entries(), 1u) << "a refused import left something behind";
        return e;
    }
    void expect_error(const GgufBytes& g, const std::string& says) {
        const std::string e = error(g.str());
        EXPECT_NE(e.find("m.gguf: "), std::string::npos) << e;
        EXPECT_NE(e.find(says), std::string::npos) << "wanted: " << says << "\ngot: " << e;
    }
    TempFolder folder_;
    ThreadPool pool_{2};
    ImportReport report_;
};

TEST_F(Import, ATinyLlamaBecomesACheckpoint) {
    const Checkpoint c = import(tiny_llama_gguf().str());
    EXPECT_EQ(report_.architecture, "LlamaForCausalLM");
    EXPECT_EQ(report_.tensors, 11);
    const HfConfig& config = c.config();
    EXPECT_EQ(config.get<int>("vocab_size"), 8);
    EXPECT_EQ(config.get<int>("head_dim"), 4);
    EXPECT_EQ(config.get<double>("rms_norm_eps"), 1e-5);
    EXPECT_TRUE(config.get<bool>("tie_word_embeddings"));
    EXPECT_EQ(config.get<int>("eos_token_id"), 5);
    EXPECT_FALSE(c.has("lm_head.weight"));
    EXPECT_EQ(c.find("model.layers.0.mlp.down_proj.weight").info->dims,
              (std::vector<int64_t>{16, 32}));
    EXPECT_EQ(c.find("model.norm.weight").info->dtype, DType::bf16) << "eighths fit bf16";
    EXPECT_EQ(config.get<std::string>("torch_dtype"), "bfloat16");
}

TEST_F(Import, RotaryPairsGoBackToTheHalvesOfTheirHead) {
    const Checkpoint c = import(tiny_llama_gguf().str());
    // The file's row r of k starts at -2 + (r * 16 % 64) / 8: rows 0 to 7 of two heads of 4.
    const auto k = read_f32(c, "model.layers.0.self_attn.k_proj.weight");
    const int order[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    for (int r = 0; r < 8; ++r)
        EXPECT_EQ(k[static_cast<size_t>(16 * r)],
                  -2 + 0.125f * static_cast<float>(order[r] * 16 % 64))
            << r;
    const auto v = read_f32(c, "model.layers.0.self_attn.v_proj.weight");
    for (int r = 0; r < 8; ++r)
        EXPECT_EQ(v[static_cast<size_t>(16 * r)], -3 + 0.125f * static_cast<float>(r * 16 % 64));
}

TEST_F(Import, BiasesFollowTheRowsOfTheirMatrix) {
    GgufBytes g = tiny_llama_gguf();
    g.tensor("blk.0.attn_k.bias", {8}, {0, 1, 2, 3, 4, 5, 6, 7});
    const Checkpoint c = import(g.str());
    EXPECT_EQ(read_f32(c, "model.layers.0.self_attn.k_proj.bias"),
              (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
    EXPECT_TRUE(c.config().has("attention_bias"));
    GgufBytes wrong = tiny_llama_gguf();
    wrong.tensor("blk.0.attn_k.bias", {4}, {0, 1, 2, 3});
    expect_error(wrong, "tensor 'blk.0.attn_k.bias'");
}

TEST_F(Import, TheTokenizerIsRebuilt) {
    import(tiny_llama_gguf().str());
    const Tokenizer t = Tokenizer::load(folder_ / "out");
    EXPECT_EQ(t.encode("abc"), (std::vector<int32_t>{4, 3, 2})) << "BOS, as llama-bpe adds it";
    EXPECT_EQ(t.encode_prompt("<s>c</s>"), (std::vector<int32_t>{4, 2, 5}));
    EXPECT_EQ(t.encode("<tool>", {.add_special = false}), std::vector<int32_t>{6});
    EXPECT_EQ(t.eos_id(), 5);
    EXPECT_TRUE(t.is_special(4));
    EXPECT_TRUE(t.is_special(5)) << "typed normal, but it ends the text";
    EXPECT_FALSE(t.is_special(6));
    EXPECT_EQ(t.id_of("x"), std::nullopt) << "unused";
}

TEST_F(Import, FlagsAndTemplatesOfTheFileWin) {
    GgufBytes g = tiny_llama_gguf();
    g.set("tokenizer.ggml.add_bos_token", false)
        .set("tokenizer.ggml.add_eos_token", true)
        .set("tokenizer.chat_template", "{{ messages[0].content }}")
        .set("tokenizer.chat_templates", std::vector<std::string>{"tool_use"})
        .set("tokenizer.chat_template.tool_use", "tools!")
        .set("general.sampling.temp", 0.6f)
        .set("general.sampling.top_k", 20)
        .set("tokenizer.ggml.eot_token_id", 6);
    const Checkpoint c = import(g.str());
    const Tokenizer t = Tokenizer::load(folder_ / "out");
    EXPECT_EQ(t.encode("c"), (std::vector<int32_t>{2, 5}));
    ASSERT_EQ(t.chat_templates().size(), 2u);
    EXPECT_EQ(t.chat_templates()[0].name, "default");
    EXPECT_EQ(t.chat_templates()[1].source, "tools!");
    EXPECT_EQ(c.generation_config()->get<double>("temperature"), 0.6);
    EXPECT_EQ(c.generation_config()->get<int>("top_k"), 20);
    EXPECT_EQ(c.config().list<int>("eos_token_id"), (std::vector<int>{5, 6}));
}

TEST_F(Import, SentencePieceMergesFollowTheScores) {
    // "ab" is worth more than "bc", so "abc" is ab + c, and "▁ab" beats both.
    GgufBytes g;
    g.set("tokenizer.ggml.model", "llama")
        .set("tokenizer.ggml.tokens",
             std::vector<std::string>{"<unk>", "<s>", "a", "b", "c", "\u2581", "ab", "bc",
                                      "\u2581ab", "  ", "<0x64>"})
        .set("tokenizer.ggml.scores",
             std::vector<float>{0, 0, -9, -9, -9, -9, -1, -2, -3, -1000, 0})
        .set("tokenizer.ggml.token_type", std::vector<int32_t>{2, 3, 1, 1, 1, 1, 1, 1, 1, 4, 6})
        .set("tokenizer.ggml.unknown_token_id", 0)
        .set("tokenizer.ggml.bos_token_id", 1);
    const auto load = [&](GgufBytes bytes) {
        const auto gguf = GgufModel::open(folder_.write("m.gguf", bytes.str())).value();
        const GgufTokenizer t = rebuild_tokenizer(gguf);
        return Tokenizer::from_json(t.tokenizer_json, t.config.dump());
    };
    const Tokenizer prefix = load(g);
    EXPECT_EQ(prefix.encode("abc"), (std::vector<int32_t>{1, 8, 4}));
    EXPECT_EQ(prefix.encode("d", {.add_special = false}), (std::vector<int32_t>{5, 10}));
    EXPECT_EQ(prefix.decode(std::vector<int32_t>{8, 4}), "abc");
    GgufBytes gemma = g;
    gemma.set("tokenizer.ggml.add_space_prefix", false);
    const Tokenizer plain = load(gemma);
    EXPECT_EQ(plain.encode("abc"), (std::vector<int32_t>{1, 6, 4}));
    EXPECT_EQ(plain.encode("c  c", {.add_special = false}), (std::vector<int32_t>{4, 9, 4}))
        << "the user-defined piece of two spaces";
    EXPECT_EQ(plain.decode(std::vector<int32_t>{8, 4}), " abc");
}

TEST_F(Import, TheNarrowestTypeWithoutLossIsChosen) {
    const auto with_head = [](float v) {
        GgufBytes g = tiny_llama_gguf();
        g.tensor("output.weight", {8, 16}, std::vector<float>(128, v));
        return g.str();
    };
    const auto dtype = [&](float v) {
        return import(with_head(v)).find("lm_head.weight").info->dtype;
    };
    EXPECT_EQ(dtype(1.5f), DType::bf16);
    EXPECT_EQ(dtype(1e30f), DType::f32) << "bf16 would round it";
    EXPECT_EQ(dtype(1.0009765625f), DType::f16) << "ten bits behind the point";
    EXPECT_EQ(dtype(0.1f), DType::f32);
    const Checkpoint rounded = import(with_head(0.1f), DType::bf16);
    EXPECT_EQ(read_f32(rounded, "lm_head.weight")[0], 0.10009765625f);

    GgufBytes q = tiny_llama_gguf();
    std::string blocks;
    for (int i = 0; i < 4; ++i) blocks += GgufBytes::raw<uint16_t>(0x3c00) + std::string(32, '\3');
    q.tensor("output.weight", 8, {4, 32}, blocks);
    expect_error(q, "tensor 'output.weight'");  // not (8, 16)
}

TEST_F(Import, WhatIsWrongIsNamed) {
    const std::string whole = tiny_llama_gguf().str();
    // A key or tensor that is called otherwise is missing.
    const auto renamed = [&](const std::string& from, const std::string& to) {
        std::string bytes = whole;
        bytes.replace(bytes.find(GgufBytes::text(from)) + 8, from.size(), to);
        return error(bytes);
    };
    const auto says = [](const std::string& e, const char* part) {
        EXPECT_NE(e.find("m.gguf: "), std::string::npos) << e;
        EXPECT_NE(e.find(part), std::string::npos) << "wanted: " << part << "\ngot: " << e;
    };
    says(renamed("general.architecture", "general.architecturE"),
         "key 'general.architecture': missing");
    says(renamed("llama.embedding_length", "llama.embedding_lengtH"),
         "key 'llama.embedding_length': missing");
    says(
        renamed("llama.attention.layer_norm_rms_epsilon", "llama.attention.layer_norm_rms_epsiloN"),
        "key 'llama.attention.layer_norm_rms_epsilon': missing");
    says(renamed("llama-bpe", "llama-bpX"), "found 'llama-bpX', needed one of gpt-2");
    says(renamed("gpt2", "rwkv"), "key 'tokenizer.ggml.model': found 'rwkv'");
    says(renamed("blk.0.ffn_down.weight", "blk.0.ffn_dowN.weight"),
         "tensor 'blk.0.ffn_dowN.weight'");
    says(renamed("blk.0.ffn_down.weight", "blk.7.ffn_down.weight"),
         "holds no tensor for 'model.layers.0.mlp.down_proj.weight'");
    says(renamed("blk.0.attn_norm.weight", "blk.0.attn_norm.biases"), "is no part of a 'llama'");
    says(renamed("token_embd.weight", "token_embD.weight"), "tensor 'token_embd.weight'");
    says(renamed("a b", "a z"), "key 'tokenizer.ggml.merges': entry 0 joins 'z'");
    says(renamed("<tool>", "<\xff\xfe\xfd>x"), "token 6 is not UTF-8");
}

TEST_F(Import, SizesThatMakeNoSenseAreRefused) {
    // Each key again under a spelling that hides the first, so that one value differs.
    const auto with = [&](const std::string& key, uint32_t value) {
        std::string bytes = tiny_llama_gguf().str();
        const size_t at = bytes.find(GgufBytes::text(key)) + 8 + key.size() + 4;
        bytes.replace(at, 4, GgufBytes::raw(value));
        return error(bytes);
    };
    for (const char* key :
         {"llama.block_count", "llama.embedding_length", "llama.attention.head_count",
          "llama.attention.head_count_kv", "llama.feed_forward_length"})
        for (const uint32_t v : {0u, 3u, 17u, 0x7fffffffu, 0x80000000u, 0xffffffffu})
            EXPECT_NE(with(key, v), "") << key << " = " << v;
    for (const uint32_t v : {0u, 0x7fffffffu, 0xffffffffu})
        EXPECT_NE(with("llama.context_length", v), "") << v;
    for (const uint32_t id : {8u, 0x7fffffffu})
        EXPECT_NE(with("tokenizer.ggml.eos_token_id", id).find("needed an id of the 8 tokens"),
                  std::string::npos);
    EXPECT_EQ(error_of([&] {
                  std::string bytes = tiny_llama_gguf().str();
                  const std::string key = "tokenizer.ggml.bos_token_id";
                  bytes.replace(bytes.find(key) + key.size() + 4, 4,
                                GgufBytes::raw<uint32_t>(0xffffffff));
                  import(bytes);
              }),
              "")
        << "-1 means none";
}

TEST_F(Import, MoreThanADenseDecoderIsRefused) {
    GgufBytes moe = tiny_llama_gguf();
    moe.set("llama.expert_count", 8);
    expect_error(moe, "key 'llama.expert_used_count': missing");
    GgufBytes per_layer = tiny_llama_gguf();
    per_layer.set("llama.attention.key_length", std::vector<int32_t>{4, 8});
    expect_error(per_layer, "differs from layer to layer");
    GgufBytes narrow = tiny_llama_gguf();
    narrow.set("llama.attention.value_length", 8);
    expect_error(narrow, "key 'llama.attention.value_length'");
    GgufBytes integers = tiny_llama_gguf();
    integers.tensor("output.weight", 24, {8, 16}, std::string(128, '\1'));
    expect_error(integers, "found the tensor type 24, which cannot be decoded");
    GgufBytes scaled = tiny_llama_gguf();
    scaled.set("llama.rope.scaling.type", "stretch");
    expect_error(scaled, "key 'llama.rope.scaling.type': found 'stretch'");
    GgufBytes freqs = tiny_llama_gguf();
    freqs.tensor("rope_freqs.weight", {2}, {2, 3});
    freqs.set("llama.rope.freq_base", 10000.0f);
    expect_error(freqs, "tensor 'rope_freqs.weight'");
}

TEST_F(Import, NumbersThatAreNoneAreRefused) {
    GgufBytes g = tiny_llama_gguf();
    std::vector<float> head(128, 1);
    head[77] = std::numeric_limits<float>::quiet_NaN();
    g.tensor("output.weight", {8, 16}, head);
    expect_error(g, "tensor 'output.weight': decodes to nan");
    head[77] = 1e30f;
    GgufBytes large = tiny_llama_gguf();
    large.tensor("output.weight", {8, 16}, head);
    const auto gguf = folder_.write("m.gguf", large.str());
    const std::string e = error_of([&] {
        import_gguf(pool_, {.source = gguf, .output = folder_ / "out", .dtype = DType::f16});
    });
    EXPECT_NE(e.find("which f16 cannot hold; use --dtype bf16 or f32"), std::string::npos) << e;
}

TEST_F(Import, AnExistingOutputIsKept) {
    std::filesystem::create_directory(folder_ / "out");
    folder_.write("out/precious", "x");
    const auto gguf = folder_.write("m.gguf", tiny_llama_gguf().str());
    EXPECT_NE(error_of([&] {
                  import_gguf(pool_, {.source = gguf, .output = folder_ / "out"});
              }).find("exists already"),
              std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "out/precious"));
}

TEST_F(Import, StoppingLeavesNothing) {
    const auto gguf = folder_.write("m.gguf", tiny_llama_gguf().str());
    const std::atomic<bool> stop{true};
    EXPECT_NE(error_of([&] {
                  import_gguf(pool_, {.source = gguf, .output = folder_ / "out", .cancel = &stop});
              }),
              "");
    EXPECT_EQ(folder_.entries(), 1u);
}

TEST_F(Import, FlippedBytesAreImportedOrRefused) {
    const std::string whole = tiny_llama_gguf().str();
    Random random(11);
    int refused = 0;
    set_log_level(LogLevel::error);
    for (int trial = 0; trial < 150; ++trial) {
        std::string bytes = whole;
        // Most bytes are weights; what is before them is where the interesting ones are.
        const uint64_t range = random.coin() ? bytes.size() : 1800;
        for (uint64_t i = 0; i <= random.below(4); ++i)
            bytes[random.below(range)] = static_cast<char>(random.next());
        refused += !error_of([&] { import(bytes); }).empty();
    }
    set_log_level(LogLevel::info);
    EXPECT_GT(refused, 30);
}

TEST(ImportNames, AreThoseOfTheReferencePackage) {
    const TempFolder folder;
    const Json golden = test::load_json(test::source_dir() / "tests/golden/data/gguf.json");
    int names = 0;
    for (const auto& [arch, table] : golden.at("names").items()) {
        for (const auto& [gguf, hf] : table.items()) {
            const bool experts = gguf.ends_with("_exps") || gguf.ends_with("gate_inp");
            if (experts && arch == "mistral3") continue;
            GgufBytes g;
            g.set("general.architecture", arch);
            if (experts || arch == "qwen3moe") g.set(arch + ".expert_count", 4);
            const GgufModel model = GgufModel::open(folder.write("m.gguf", g.str())).value();
            GgufTensor t;
            t.name = gguf + ".weight";
            std::string got = checkpoint_name(model, family_of(model), t);
            if (const size_t star = got.find("*."); star != std::string::npos) got.erase(star, 2);
            bool listed = false;
            for (const Json& name : hf) listed |= got == name.get<std::string>() + ".weight";
            EXPECT_TRUE(listed) << arch << ": " << gguf << " became " << got;
            ++names;
        }
    }
    EXPECT_GT(names, 150);
}

TEST(ImportNames, ExpertsNeedAFamilyThatHasThem) {
    const TempFolder folder;
    GgufBytes g;
    g.set("general.architecture", "qwen3").set("qwen3.expert_count", 4);
    const GgufModel model = GgufModel::open(folder.write("m.gguf", g.str())).value();
    EXPECT_NE(error_of([&] {
                  family_of(model);
              }).find("key 'qwen3.expert_count': a 'qwen3' with experts cannot be imported"),
              std::string::npos);
}

TEST(PreTokenizers, EveryNameGivesATokenizer) {
    std::string names = known_pre_tokenizers();
    size_t at = 0;
    int count = 0;
    const std::string model = R"("model":{"type":"BPE","vocab":{"a":0},"merges":[]})";
    while (at < names.size()) {
        const size_t end = std::min(names.find(", ", at), names.size());
        const auto pre = pre_tokenizer_named(names.substr(at, end - at));
        ASSERT_TRUE(pre);
        const std::string json = "{\"normalizer\":" + pre->normalizer.dump() +
                                 ",\"pre_tokenizer\":" + pre->pre_tokenizer.dump() + "," + model +
                                 "}";
        EXPECT_EQ(error_of([&] { Tokenizer::from_json(json).encode("Word 123, it's 4 \n\n x"); }),
                  "")
            << names.substr(at, end - at);
        at = end + 2;
        ++count;
    }
    EXPECT_GT(count, 30);
    EXPECT_FALSE(pre_tokenizer_named("nothing"));
}

TEST(Shards, AreFilledInOrder) {
    const TempFolder folder;
    std::vector<TensorToMake> tensors;
    for (int i = 0; i < 4; ++i)
        tensors.push_back(
            {fmt::format("t{}", i), DType::u8, {600 << 10}, [i](SafetensorsWriter& w) {
                 const std::string part(100 << 10, static_cast<char>('a' + i));
                 for (int k = 0; k < 6; ++k) w.write(part.data(), part.size());
             }});
    tensors[3].dims = {1 << 10};
    tensors[3].write = [](SafetensorsWriter& w) {
        const std::string part(1 << 10, 'z');
        w.write(part.data(), part.size());
    };
    EXPECT_EQ(write_shards(folder.path(), tensors, 1), 3u * (600 << 10) + (1 << 10));
    folder.write("config.json", "{}");
    const Checkpoint c = Checkpoint::open(folder.path());
    EXPECT_EQ(c.tensors().size(), 4u);
    EXPECT_EQ(folder.entries(), 5u) << "three files, the index, config.json";
    EXPECT_EQ(c.find("t3").file, c.find("t2").file);
    EXPECT_EQ(*c.view("t1").as<char>(), 'b');
}

}  // namespace
}  // namespace exl3
