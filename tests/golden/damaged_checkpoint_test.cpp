// Small EXL3 checkpoints, damaged in many ways: loading and running end in logits or in an Error.
#include <gtest/gtest.h>

#include "arch/arch.h"
#include "backends/backends.h"
#include "gen/session.h"
#include "support/golden.h"
#include "support/mutate_json.h"
#include "support/temp_folder.h"

namespace exl3::test {
namespace {

namespace fs = std::filesystem;

/// A checkpoint's config and weights in memory, to be damaged and written again.
struct Files {
    std::string config, weights;
    explicit Files(const fs::path& folder)
        : config(read_file(folder / "config.json").value()),
          weights(read_file(folder / "model.safetensors").value()) {}
    size_t header() const {
        uint64_t length = 0;
        std::memcpy(&length, weights.data(), sizeof length);
        return 8 + length;
    }
};

/// "" when logits came out, else the text of the Error.
std::string load_and_run(const Files& files, Stream& stream) {
    const TempFolder folder;
    folder.write("config.json", files.config);
    folder.write("model.safetensors", files.weights);
    return error_of([&] {
        const Checkpoint checkpoint = Checkpoint::open(folder.path());
        const Model model(stream, checkpoint, describe(checkpoint));
        Session session(model, stream, {.max_tokens = 4});
        std::vector<float> logits(static_cast<size_t>(model.spec().vocab));
        session.feed(std::vector<int32_t>{0, 1, 2}, logits);
    });
}

class DamagedCheckpoint : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (!fs::exists(golden_dir() / "exl3-models" / GetParam()))
            GTEST_SKIP() << "no golden data";
        files_.emplace(golden_dir() / "exl3-models" / GetParam());
        ASSERT_EQ(load_and_run(*files_, *stream_), "");
    }
    std::unique_ptr<Device> device_ = open_device("cpu").value();
    std::unique_ptr<Stream> stream_ = device_->make_stream();
    std::optional<Files> files_;
};

TEST_P(DamagedCheckpoint, ConfigsWithOtherValues) {
    Random random(1);
    for (int trial = 0; trial < 100; ++trial) {
        Files bad = *files_;
        Json config = parse_json(bad.config, "config.json").value();
        for (uint64_t n = 1 + random.below(2); n > 0; --n) mutate_json(config, random);
        bad.config = config.dump();
        SCOPED_TRACE(bad.config);
        load_and_run(bad, *stream_);
    }
}

TEST_P(DamagedCheckpoint, HeadersWithOtherDigitsAndBits) {
    Random random(2);
    for (int trial = 0; trial < 100; ++trial) {
        Files bad = *files_;
        char& c = bad.weights[random.below(bad.header())];
        c = c >= '0' && c <= '9' ? static_cast<char>('0' + random.below(10))
                                 : static_cast<char>(c ^ (1 << random.below(8)));
        load_and_run(bad, *stream_);
    }
}

TEST_P(DamagedCheckpoint, HeadersThatAreSoundButOfAnotherModel) {
    // Names swapped between tensors and shapes rewritten: every range still fits its shape.
    Random random(3);
    for (int trial = 0; trial < 100; ++trial) {
        Files bad = *files_;
        Json header =
            parse_json(std::string_view(bad.weights).substr(8, bad.header() - 8), "m").value();
        auto a = std::next(header.begin(), static_cast<int64_t>(random.below(header.size())));
        auto b = std::next(header.begin(), static_cast<int64_t>(random.below(header.size())));
        switch (random.below(4)) {
            case 0: std::swap(a.value(), b.value()); break;
            case 1: std::reverse(a.value()["shape"].begin(), a.value()["shape"].end()); break;
            case 2: a.value()["shape"].push_back(1); break;
            default: {
                const std::string dtype = a.value()["dtype"];
                a.value()["dtype"] = dtype == "F16" ? "BF16" : dtype == "I16" ? "F16" : "I16";
            }
        }
        std::string text = header.dump();
        const uint64_t length = text.size();
        bad.weights = std::string(reinterpret_cast<const char*>(&length), 8) + text +
                      bad.weights.substr(bad.header());
        load_and_run(bad, *stream_);
    }
}

TEST_P(DamagedCheckpoint, DataOfAnyBits) {
    Random random(4);
    for (int trial = 0; trial < 100; ++trial) {
        Files bad = *files_;
        const size_t at = bad.header() + random.below(bad.weights.size() - bad.header());
        const size_t n = std::min<size_t>(1 + random.below(64), bad.weights.size() - at);
        for (size_t i = 0; i < n; ++i) bad.weights[at + i] = static_cast<char>(random.next());
        if (random.coin()) std::fill_n(bad.weights.begin() + static_cast<int64_t>(at), n, '\xff');
        load_and_run(bad, *stream_);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, DamagedCheckpoint,
                         testing::Values("LlamaForCausalLM-4.0bpw-mul1",
                                         "LlamaForCausalLM-3.0bpw-3inst",
                                         "Phi3ForCausalLM-5.0bpw-mul1",
                                         "Qwen3ForCausalLM-4.0bpw-mul1"),
                         [](const auto& info) {
                             std::string name = info.param;
                             for (char& c : name)
                                 if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                             return name;
                         });

}  // namespace
}  // namespace exl3::test
