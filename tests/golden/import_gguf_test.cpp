// GGUF files made from the golden tokenizers and tiny models, imported again: texts must encode as
// before, and the imported models must give the logits of the originals.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "base/half.h"
#include "import/gguf_tokenizer.h"
#include "import/import_gguf.h"
#include "io/checkpoint.h"
#include "io/convert.h"
#include "support/gguf_bytes.h"
#include "support/golden.h"
#include "support/logits_of.h"
#include "text/tokenizer.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;
using test::GgufBytes;
using test::golden_dir;
using test::load_json;
using test::TempFolder;

// ---- tokenizers

struct TokenizerCase {
    const char* name;  ///< of the golden tokenizer
    const char* kind;  ///< tokenizer.ggml.model
    const char* pre;   ///< tokenizer.ggml.pre; nullptr: SentencePiece
    bool space_prefix;
};

// The project's Json keeps the order of keys and is slow for hundreds of thousands of them.
using Tree = nlohmann::json;

class ImportedTokenizer : public testing::TestWithParam<TokenizerCase> {};

std::string unpacked(const fs::path& xz) {
    std::string out;
    FILE* pipe = popen(("xz -dc '" + xz.string() + "'").c_str(), "r");
    if (!pipe) return out;
    char block[1 << 16];
    for (size_t n; (n = fread(block, 1, sizeof block, pipe)) > 0;) out.append(block, n);
    pclose(pipe);
    return out;
}

std::string merge_part(const Tree& merge, size_t which) {
    if (merge.is_array()) return merge[which].get<std::string>();
    const auto line = merge.get<std::string>();
    const size_t space = line.find(' ', 1);
    return which == 0 ? line.substr(0, space) : line.substr(space + 1);
}

// What a writer of GGUF makes of a tokenizer.json.
GgufBytes gguf_of(const Tree& t, const Tree& config, const TokenizerCase& c) {
    std::vector<std::pair<int64_t, std::string>> by_id;
    for (const auto& [token, id] : t.at("model").at("vocab").items())
        by_id.emplace_back(id.get<int64_t>(), token);
    std::map<std::string, std::pair<int64_t, bool>> added;
    for (const Tree& a : t.at("added_tokens"))
        added[a.at("content")] = {a.at("id").get<int64_t>(), a.at("special").get<bool>()};
    for (const auto& [token, a] : added) by_id.emplace_back(a.first, token);
    std::vector<std::string> tokens(
        static_cast<size_t>(std::max_element(by_id.begin(), by_id.end())->first) + 1);
    std::vector<int32_t> types(tokens.size(), 5);
    for (const auto& [id, token] : by_id) {
        const auto i = static_cast<size_t>(id);
        tokens[i] = token;
        const bool byte = !c.pre && token.size() == 6 && token.starts_with("<0x");
        types[i] = !added.contains(token) ? (byte ? 6 : 1) : added.at(token).second ? 3 : 4;
        if (!c.pre && token == "<unk>") types[i] = 2;
    }
    for (size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i].empty()) tokens[i] = fmt::format("[PAD{}]", i);

    GgufBytes g;
    g.set("tokenizer.ggml.model", c.kind).set("tokenizer.ggml.token_type", types);
    const Tree& merges = t.at("model").at("merges");
    if (c.pre) {
        std::vector<std::string> lines;
        for (const Tree& m : merges) lines.push_back(merge_part(m, 0) + " " + merge_part(m, 1));
        g.set("tokenizer.ggml.pre", c.pre).set("tokenizer.ggml.merges", lines);
    } else {
        // Scores that rank the pieces as the merges do.
        std::map<std::string, int64_t> rank;
        for (size_t i = 0; i < merges.size(); ++i)
            rank.emplace(merge_part(merges[i], 0) + merge_part(merges[i], 1), i);
        std::vector<float> scores;
        for (const std::string& token : tokens)
            scores.push_back(rank.contains(token) ? -static_cast<float>(rank.at(token)) : -1e6f);
        g.set("tokenizer.ggml.scores", scores)
            .set("tokenizer.ggml.add_space_prefix", c.space_prefix)
            .set("tokenizer.ggml.unknown_token_id",
                 static_cast<uint32_t>(std::find(tokens.begin(), tokens.end(), "<unk>") -
                                       tokens.begin()));
    }
    g.set("tokenizer.ggml.tokens", tokens);
    for (const char* name : {"bos", "eos"}) {
        const std::string key = std::string(name) + "_token";
        if (!config.contains(key) || config.at(key).is_null()) continue;
        const Tree& v = config.at(key);
        const auto text = v.is_string() ? v.get<std::string>() : v.at("content").get<std::string>();
        const auto id = std::find(tokens.begin(), tokens.end(), text) - tokens.begin();
        g.set(fmt::format("tokenizer.ggml.{}_token_id", name), static_cast<uint32_t>(id));
    }
    return g;
}

TEST_P(ImportedTokenizer, EncodesAsTheOriginal) {
    const TokenizerCase& c = GetParam();
    const fs::path packed = golden_dir() / "tokenizers" / (std::string(c.name) + ".tar.xz");
    if (!fs::exists(packed)) GTEST_SKIP() << "no golden data";
    const TempFolder folder;
    if (std::system(
            ("tar -C '" + folder.path().string() + "' -xJf '" + packed.string() + "'").c_str()) !=
        0)
        GTEST_SKIP() << "tar cannot unpack .tar.xz here";
    fs::path original;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
        if (entry.path().filename() == "tokenizer.json") original = entry.path().parent_path();

    const auto read = [&](const char* name) {
        return Tree::parse(read_file(original / name).value());
    };
    const GgufBytes bytes = gguf_of(read("tokenizer.json"), read("tokenizer_config.json"), c);
    const GgufModel gguf = GgufModel::open(folder.write("t.gguf", bytes.str())).value();
    const GgufTokenizer rebuilt = rebuild_tokenizer(gguf);
    const Tokenizer tokenizer = Tokenizer::from_json(rebuilt.tokenizer_json, rebuilt.config.dump());

    std::map<std::string, std::string> texts;
    for (const Json& t : load_json(golden_dir() / "tokenizers/texts.json"))
        texts[t.at("id")] = t.at("text");
    const Tree expected = Tree::parse(
        unpacked(golden_dir() / "tokenizers" / (std::string(c.name) + ".expected.json.xz")));
    int compared = 0;
    for (const Tree& e : expected.at("texts")) {
        const auto id = e.at("id").get<std::string>();
        const std::string& text = texts.at(id);
        const auto ids = e.at("ids").get<std::vector<int32_t>>();
        EXPECT_EQ(tokenizer.encode(text, {.add_special = false}), ids) << id;
        EXPECT_EQ(tokenizer.encode(text), e.at("ids_special").get<std::vector<int32_t>>()) << id;
        EXPECT_EQ(tokenizer.decode(ids, {.skip_special = false}), e.at("decode").get<std::string>())
            << id;
        ++compared;
    }
    EXPECT_GT(compared, 100);
}

INSTANTIATE_TEST_SUITE_P(All, ImportedTokenizer,
                         testing::Values(TokenizerCase{"llama3_1", "gpt2", "llama-bpe", false},
                                         TokenizerCase{"qwen3", "gpt2", "qwen2", false},
                                         TokenizerCase{"gptoss", "gpt2", "gpt-4o", false},
                                         TokenizerCase{"gemma3", "llama", nullptr, false},
                                         TokenizerCase{"llama2", "llama", nullptr, true}),
                         [](const auto& info) { return info.param.name; });

// ---- models

// Where a family differs from its config: which architecture writes what.
struct ModelCase {
    const char* name;  ///< of the golden tiny model
    const char* arch;  ///< general.architecture
    bool paired = false, plus_one = false;
};

class ImportedModel : public testing::TestWithParam<ModelCase> {};

/// Turns a tiny checkpoint into GGUF, with the names of the reference package.
class Writer {
public:
    Writer(const Checkpoint& source, const ModelCase& c)
        : source_(source), c_(c), config_(source.config().json()) {}

    std::string run() {
        g_.set("general.architecture", c_.arch);
        sizes();
        experts();
        rope();
        special();
        for (const auto& [name, entry] : source_.tensors()) tensor(name, *entry.info);
        for (const auto& [name, stack] : experts_)
            g_.tensor(gguf_name(name), 30, stack.dims, stack.bytes);
        const auto vocab = config_.at("vocab_size").get<size_t>();
        std::vector<std::string> tokens = {"a", "b", "ab"};
        while (tokens.size() < vocab) tokens.push_back(fmt::format("<{}>", tokens.size()));
        g_.set("tokenizer.ggml.model", "gpt2")
            .set("tokenizer.ggml.pre", "gpt-2")
            .set("tokenizer.ggml.tokens", tokens)
            .set("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
        return g_.str();
    }

private:
    std::string key(const char* name) const { return fmt::format("{}.{}", c_.arch, name); }
    bool given(const char* name) const {
        return config_.contains(name) && !config_.at(name).is_null();
    }
    template <typename T>
    T number(const char* name) const {
        return config_.at(name).get<T>();
    }

    void sizes() {
        heads_ = number<int>("num_attention_heads");
        kv_heads_ = number<int>("num_key_value_heads");
        head_dim_ =
            given("head_dim") ? number<int>("head_dim") : number<int>("hidden_size") / heads_;
        g_.set(key("block_count"), number<int>("num_hidden_layers"))
            .set(key("context_length"), number<int>("max_position_embeddings"))
            .set(key("embedding_length"), number<int>("hidden_size"))
            .set(key("feed_forward_length"), number<int>("intermediate_size"))
            .set(key("attention.head_count"), heads_)
            .set(key("attention.head_count_kv"), kv_heads_)
            .set(key("attention.key_length"), head_dim_)
            .set(key("attention.value_length"), head_dim_);
        if (given("rms_norm_eps"))
            g_.set(key("attention.layer_norm_rms_epsilon"), number<float>("rms_norm_eps"));
        if (given("layer_norm_eps"))
            g_.set(key("attention.layer_norm_epsilon"), number<float>("layer_norm_eps"));
    }

    void experts() {
        const char* count = given("num_experts") ? "num_experts" : "num_local_experts";
        if (!given(count)) return;
        g_.set(key("expert_count"), number<int>(count))
            .set(key("expert_used_count"), number<int>("num_experts_per_tok"));
        if (given("moe_intermediate_size"))
            g_.set(key("expert_feed_forward_length"), number<int>("moe_intermediate_size"));
    }

    void rope() {
        Json p = given("rope_parameters") ? config_.at("rope_parameters")
                 : given("rope_scaling")  ? config_.at("rope_scaling")
                                          : Json::object();
        const double theta = p.contains("rope_theta") ? p.at("rope_theta").get<double>()
                                                      : config_.at("rope_theta").get<double>();
        g_.set(key("rope.freq_base"), static_cast<float>(theta));
        const int dims = static_cast<int>(head_dim_ * p.value("partial_rotary_factor", 1.0));
        g_.set(key("rope.dimension_count"), dims);
        const auto type = p.value("rope_type", std::string("default"));
        if (type == "llama3") {
            std::vector<float> factors;
            const double old = p.at("original_max_position_embeddings").get<double>();
            const double factor = p.at("factor").get<double>();
            for (int i = 0; i < dims; i += 2) {
                const double wave = 2 * std::numbers::pi * std::pow(theta, double(i) / dims);
                const double smooth = (old / wave - 1) / 3;
                factors.push_back(static_cast<float>(wave < old / 4 ? 1
                                                     : wave > old
                                                         ? factor
                                                         : 1 / ((1 - smooth) / factor + smooth)));
            }
            g_.tensor("rope_freqs.weight", {static_cast<int64_t>(factors.size())}, factors);
        } else if (type == "yarn" || type == "linear") {
            g_.set(key("rope.scaling.type"), type)
                .set(key("rope.scaling.factor"), p.at("factor").get<float>());
            if (type == "yarn")
                g_.set(key("rope.scaling.original_context_length"),
                       p.at("original_max_position_embeddings").get<int>());
            if (p.contains("llama_4_scaling_beta"))
                g_.set(key("attention.temperature_scale"),
                       p.at("llama_4_scaling_beta").get<float>());
        } else if (type == "longrope") {
            g_.set(key("rope.scaling.original_context_length"),
                   number<int>("original_max_position_embeddings"));
            for (const char* which : {"short", "long"}) {
                const auto f = p.at(fmt::format("{}_factor", which)).get<std::vector<float>>();
                g_.tensor(fmt::format("rope_factors_{}.weight", which),
                          {static_cast<int64_t>(f.size())}, f);
            }
        }
    }

    void special() {
        const bool slides = given("sliding_window") && config_.value("use_sliding_window", true);
        if (slides) g_.set(key("attention.sliding_window"), number<int>("sliding_window"));
        if (slides && given("layer_types")) {
            std::vector<bool> flags;
            for (const Json& t : config_.at("layer_types"))
                flags.push_back(t == "sliding_attention");
            g_.set(key("attention.sliding_window_pattern"), flags);
        }
        if (given("attn_logit_softcapping"))
            g_.set(key("attn_logit_softcapping"), number<float>("attn_logit_softcapping"));
        if (given("final_logit_softcapping"))
            g_.set(key("final_logit_softcapping"), number<float>("final_logit_softcapping"));
        if (given("logit_scale")) g_.set(key("logit_scale"), number<float>("logit_scale"));
        if (given("query_pre_attn_scalar"))
            g_.set(key("attention.scale"), 1 / std::sqrt(number<float>("query_pre_attn_scalar")));
    }

    void tensor(const std::string& name, const TensorInfo& info) {
        std::vector<float> v = read_f32(source_, name);
        const bool q = name.find(".q_proj.") != std::string::npos;
        if (c_.paired && (q || name.find(".k_proj.") != std::string::npos))
            v = paired(v, q ? heads_ : kv_heads_, info.dims[0]);
        if (c_.plus_one && name.ends_with("norm.weight"))
            for (float& x : v) x += 1;
        if (info.dims.size() == 1) {
            g_.tensor(gguf_name(name), info.dims, v);
            return;
        }
        std::string bytes;
        for (const float x : v) bytes += GgufBytes::raw(to_bf16(x).bits);
        const size_t at = name.find(".experts.");
        if (at == std::string::npos) {
            g_.tensor(gguf_name(name), 30, info.dims, bytes);
            return;
        }
        // ".experts.7.w1.weight" is slice 7 of one tensor. Less than ten of them come in order.
        Stack& stack = experts_[name.substr(0, at + 8) + name.substr(name.find('.', at + 9))];
        stack.bytes += bytes;
        stack.dims = {stack.dims.empty() ? 1 : stack.dims[0] + 1, info.dims[0], info.dims[1]};
    }

    // Both halves of a head, one row of each in turn.
    static std::vector<float> paired(const std::vector<float>& v, int heads, int64_t rows) {
        const size_t width = v.size() / static_cast<size_t>(rows);
        std::vector<float> out;
        const int64_t head_dim = rows / heads;
        for (int64_t h = 0; h < heads; ++h)
            for (int64_t i = 0; i < head_dim / 2; ++i)
                for (const int64_t half : {int64_t{0}, head_dim / 2}) {
                    const auto at = v.begin() + (h * head_dim + half + i) * int64_t(width);
                    out.insert(out.end(), at, at + int64_t(width));
                }
        return out;
    }

    std::string gguf_name(std::string name) const {
        if (name == "lm_head.weight") return "output.weight";
        std::string layer = "0", leaf = name.substr(name.rfind('.'));
        name.resize(name.size() - leaf.size());
        if (name.starts_with("model.layers.")) {
            const size_t end = name.find('.', 13);
            layer = name.substr(13, end - 13);
            name = "model.layers.0" + name.substr(end);
        }
        static const Json golden = load_json(test::source_dir() / "tests/golden/data/gguf.json");
        for (const auto& [gguf, hf] : golden.at("names").at(c_.arch).items())
            if (std::find(hf.begin(), hf.end(), name) != hf.end())
                return (gguf.starts_with("blk.0") ? "blk." + layer + gguf.substr(5) : gguf) + leaf;
        ADD_FAILURE() << "no GGUF name for " << name << " of " << c_.arch;
        return "unknown" + name;
    }

    struct Stack {
        std::string bytes;
        std::vector<int64_t> dims;
    };
    const Checkpoint& source_;
    ModelCase c_;
    std::map<std::string, Stack> experts_;
    Json config_;
    GgufBytes g_;
    int heads_ = 0, kv_heads_ = 0, head_dim_ = 0;
};

TEST_P(ImportedModel, GivesTheLogitsOfTheOriginal) {
    const ModelCase& c = GetParam();
    const fs::path golden = golden_dir() / "tiny-models";
    if (!fs::exists(golden)) GTEST_SKIP() << "no golden data";
    const Json manifest = load_json(golden / "manifest.json");
    if (!manifest.at("models").contains(c.name)) GTEST_SKIP() << "not among the golden models";
    const TempFolder folder;
    ASSERT_EQ(std::system(fmt::format("/usr/bin/python3 {}/make_tiny.py {} {} > /dev/null 2>&1",
                                      golden.string(), folder.path().string(), c.name)
                              .c_str()),
              0);
    const Checkpoint source = Checkpoint::open(folder / c.name);
    const auto gguf = folder.write("m.gguf", Writer(source, c).run());
    ThreadPool pool(1);
    import_gguf(pool, {.source = gguf, .output = folder / "imported"});

    // Every weight is back bit for bit; of norms stored plus one, what f32 has kept of them.
    const Checkpoint back = Checkpoint::open(folder / "imported");
    EXPECT_EQ(back.tensors().size(), source.tensors().size());
    for (const auto& [name, entry] : source.tensors()) {
        ASSERT_TRUE(back.has(name)) << name;
        EXPECT_EQ(back.find(name).info->dims, entry.info->dims) << name;
        const std::vector<float> now = read_f32(back, name), then = read_f32(source, name);
        const float lost = c.plus_one && name.ends_with("norm.weight") ? 0x1p-23f : 0;
        ASSERT_EQ(now.size(), then.size()) << name;
        for (size_t i = 0; i < now.size(); ++i) ASSERT_NEAR(now[i], then[i], lost) << name;
    }

    const SafetensorsFile file = SafetensorsFile::open(golden / "logits.safetensors").value();
    const TensorInfo* info = file.find(std::string(c.name) + ".hf_fp32");
    ASSERT_NE(info, nullptr);
    const auto* want = file.view(*info).as<float>();
    const test::Logits all =
        test::logits_of((folder / "imported").string(), manifest.at("ids").dump());
    const auto vocab = static_cast<size_t>(info->dims[1]);
    std::vector<float> got;
    for (const Json& p : manifest.at("positions")) {
        const auto row = all.values.begin() + int64_t(p.get<size_t>() * vocab);
        got.insert(got.end(), row, row + int64_t(vocab));
    }
    EXPECT_LT(test::relative_error(got.data(), want, got.size()), 2e-3);
}

INSTANTIATE_TEST_SUITE_P(
    All, ImportedModel,
    testing::Values(
        ModelCase{"LlamaForCausalLM", "llama", true},
        ModelCase{"MistralForCausalLM", "llama", true},
        ModelCase{"Ministral3ForCausalLM", "mistral3", true},
        ModelCase{"Qwen2ForCausalLM", "qwen2"}, ModelCase{"Qwen3ForCausalLM", "qwen3"},
        ModelCase{"MixtralForCausalLM", "llama", true},
        ModelCase{"Qwen3MoeForCausalLM", "qwen3moe"},
        ModelCase{"Gemma2ForCausalLM", "gemma2", false, true},
        ModelCase{"Gemma3ForCausalLM", "gemma3", false, true}, ModelCase{"Phi3ForCausalLM", "phi3"},
        ModelCase{"SmolLM3ForCausalLM", "smollm3", true}, ModelCase{"Olmo3ForCausalLM", "olmo2"},
        ModelCase{"CohereForCausalLM", "command-r"}, ModelCase{"Cohere2ForCausalLM", "cohere2"},
        ModelCase{"Glm4ForCausalLM", "glm4"}, ModelCase{"Exaone4ForCausalLM", "exaone4"},
        ModelCase{"Exaone4ForCausalLM.full", "exaone4"},
        ModelCase{"SeedOssForCausalLM", "seed_oss"}, ModelCase{"Ernie4_5ForCausalLM", "ernie4_5"},
        ModelCase{"ArceeForCausalLM", "arcee", true}),
    [](const auto& info) {
        std::string name = info.param.name;
        std::replace(name.begin(), name.end(), '.', '_');
        return name;
    });

}  // namespace
}  // namespace exl3
