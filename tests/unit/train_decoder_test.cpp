// The trainable decoder computes what the engine computes, and its gradients are those of its loss.
#include "train/decoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "arch/arch.h"
#include "base/random.h"
#include "cpu/cpu.h"
#include "gen/session.h"
#include "support/golden.h"

namespace exl3::test {
namespace {

namespace fs = std::filesystem;
using train::Matrix;

constexpr int kVocab = 100, kHidden = 128;

/// A small random checkpoint of an architecture that keeps the usual names.
void write_model(const fs::path& folder, const std::string& architecture, const Json& more) {
    Json config = {{"architectures", {architecture}},
                   {"hidden_size", kHidden},
                   {"num_attention_heads", 4},
                   {"num_key_value_heads", 2},
                   {"head_dim", 32},
                   {"num_hidden_layers", 2},
                   {"intermediate_size", 192},
                   {"rms_norm_eps", 1e-5},
                   {"vocab_size", kVocab},
                   {"max_position_embeddings", 64},
                   {"tie_word_embeddings", true}};
    config.update(more);
    const bool head_norms = architecture == "Qwen3ForCausalLM";
    const bool biases = architecture == "Qwen2ForCausalLM";
    Random random(5);
    std::vector<std::pair<TensorToWrite, std::vector<float>>> all;
    const auto add = [&](const std::string& name, std::vector<int64_t> dims, double mean = 0) {
        std::vector<float> v(static_cast<size_t>(
            std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>())));
        for (float& x : v) x = static_cast<float>(mean + 0.12 * random.normal());
        all.emplace_back(TensorToWrite{name, DType::f32, std::move(dims), nullptr}, std::move(v));
    };
    add("model.embed_tokens.weight", {kVocab, kHidden});
    add("model.norm.weight", {kHidden}, 1);
    for (int i = 0; i < 2; ++i) {
        const std::string at = "model.layers." + std::to_string(i) + ".";
        add(at + "input_layernorm.weight", {kHidden}, 1);
        add(at + "post_attention_layernorm.weight", {kHidden}, 1);
        for (const auto& [name, out] :
             {std::pair("q", 128), std::pair("k", 64), std::pair("v", 64)}) {
            add(at + "self_attn." + name + "_proj.weight", {out, kHidden});
            if (biases) add(at + "self_attn." + name + "_proj.bias", {out});
        }
        add(at + "self_attn.o_proj.weight", {kHidden, 128});
        if (head_norms) {
            add(at + "self_attn.q_norm.weight", {32}, 1);
            add(at + "self_attn.k_norm.weight", {32}, 1);
        }
        add(at + "mlp.gate_proj.weight", {192, kHidden});
        add(at + "mlp.up_proj.weight", {192, kHidden});
        add(at + "mlp.down_proj.weight", {kHidden, 192});
    }
    fs::create_directories(folder);
    write_file(folder / "config.json", config.dump());
    std::vector<TensorToWrite> out;
    for (const auto& [tensor, values] : all) {
        out.push_back(tensor);
        out.back().data = values.data();
    }
    write_safetensors(folder / "model.safetensors", out);
}

struct Kind {
    std::string architecture;
    Json more = Json::object();
};
const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all = {
        {"LlamaForCausalLM"},
        {"Qwen3ForCausalLM"},
        {"Qwen2ForCausalLM"},
        {"MistralForCausalLM", {{"sliding_window", 5}}},
    };
    return all;
}

class TrainDecoder : public testing::TestWithParam<size_t> {
protected:
    void SetUp() override {
        const Kind& kind = kinds()[GetParam()];
        write_model(folder.path() / "m", kind.architecture, kind.more);
        checkpoint.emplace(Checkpoint::open(folder.path() / "m"));
        spec = describe(*checkpoint);
        Random random(2);
        for (int64_t t = 0; t < q.tokens(); ++t)
            ids.push_back(static_cast<int32_t>(random.below(kVocab)));
    }
    const TempDir folder;
    std::unique_ptr<Device> device = cpu::open({.threads = 1});
    std::unique_ptr<Stream> stream = device->make_stream();
    std::optional<Checkpoint> checkpoint;
    ModelSpec spec;
    const train::Sequences q{2, 9};
    std::vector<int32_t> ids;
};

TEST_P(TrainDecoder, AgreesWithTheEngine) {
    ASSERT_EQ(train::why_not(spec), "");
    train::Decoder decoder(*checkpoint, spec, train::plain_weights(*checkpoint));
    const Matrix x = decoder.forward(*stream, q, ids);
    const Matrix logits = decoder.ends().logits(*stream, decoder.ends().normed(x));
    const Model model(*stream, *checkpoint, spec);
    for (int64_t sequence = 0; sequence < q.count; ++sequence) {
        Session session(model, *stream, {.max_tokens = q.length, .chunk = 64});
        const auto begin = ids.begin() + sequence * q.length;
        const std::vector<int32_t> part(begin, begin + q.length);
        session.feed_all(part, [&](int64_t first, ConstView want) {
            for (int64_t r = 0; r < want.shape[0]; ++r)
                for (int64_t j = 0; j < kVocab; ++j)
                    ASSERT_NEAR(logits.row(sequence * q.length + first + r)[j],
                                want.row<float>(r)[j],
                                1e-2);  // the engine keeps keys and values in f16
        });
    }
}

/// Gradients by the size of each row and column of every matrix.
struct SizeTap final : train::GradientTap {
    std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> gradient;
    void linear(Stream&, const train::LinearGradient& g) override {
        auto& [in, out] = gradient[g.linear.spec.key.str()];
        in.resize(static_cast<size_t>(g.x.cols));
        out.resize(static_cast<size_t>(g.y.cols));
        for (int64_t t = 0; t < g.x.rows; ++t) {
            for (size_t i = 0; i < in.size(); ++i) in[i] += g.x.row(t)[i] * g.dx.row(t)[i];
            for (size_t j = 0; j < out.size(); ++j) {
                const float bias = g.linear.bias.empty() ? 0 : g.linear.bias[j];
                out[j] += (g.y.row(t)[j] - bias) * g.dy.row(t)[j];
            }
        }
    }
};

TEST_P(TrainDecoder, GradientsAreThoseOfTheLoss) {
    train::Decoder decoder(*checkpoint, spec, train::plain_weights(*checkpoint));
    Random random(7);
    std::vector<float> c(static_cast<size_t>(q.tokens() * kVocab));
    for (float& v : c) v = static_cast<float>(random.normal());
    const auto loss = [&] {
        const Matrix x = decoder.forward(*stream, q, ids);
        const Matrix logits = decoder.ends().logits(*stream, decoder.ends().normed(x));
        double sum = 0;
        for (size_t i = 0; i < c.size(); ++i) sum += static_cast<double>(c[i]) * logits.data[i];
        return sum;
    };
    SizeTap tap;
    decoder.backward(
        *stream, q, decoder.forward(*stream, q, ids),
        [&](int64_t first, Matrix& logits) {
            std::copy_n(c.data() + first * kVocab, logits.data.size(), logits.data.data());
        },
        tap);
    EXPECT_EQ(tap.gradient.size(), 15u);

    std::vector<train::LinearWeight*> linears;
    decoder.each_linear([&](train::LinearWeight& w) { linears.push_back(&w); });
    constexpr double kStep = 2e-3;
    for (train::LinearWeight* w : linears) {
        const auto& [in, out] = tap.gradient.at(w->spec.key.str());
        const auto slope = [&](const std::function<void(double)>& scale) {
            scale(1 + kStep);
            const double up = loss();
            scale((1 - kStep) / (1 + kStep));
            const double down = loss();
            scale(1 / (1 - kStep));
            return (up - down) / (2 * kStep);
        };
        const auto j = static_cast<int64_t>(random.below(out.size()));
        const double by_row = slope([&](double f) {
            for (int64_t i = 0; i < w->weight.cols; ++i)
                w->weight.row(j)[i] *= static_cast<float>(f);
        });
        EXPECT_NEAR(out[static_cast<size_t>(j)], by_row, 0.02 * std::fabs(by_row) + 0.05)
            << w->spec.key.str();
        const auto i = static_cast<int64_t>(random.below(in.size()));
        const double by_column = slope([&](double f) {
            for (int64_t r = 0; r < w->weight.rows; ++r)
                w->weight.row(r)[i] *= static_cast<float>(f);
        });
        EXPECT_NEAR(in[static_cast<size_t>(i)], by_column, 0.02 * std::fabs(by_column) + 0.05)
            << w->spec.key.str();
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TrainDecoder, testing::Range<size_t>(0, 4));

}  // namespace
}  // namespace exl3::test
