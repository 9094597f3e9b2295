// Every known architecture against transformers' float32 logits on a tiny random model, and EXL3
// checkpoints made by the reference converter against the logits of their decoded weights.
#include <cstdlib>

#include "arch/arch.h"
#include "backends/backends.h"
#include "gen/session.h"
#include "support/devices.h"
#include "support/golden.h"

namespace exl3::test {
namespace {

namespace fs = std::filesystem;

struct Case {
    std::string name;  // folder
    fs::path folder;
    std::string tensor;  // in logits.safetensors
    fs::path logits;
    double tolerance;
};

// The checkpoints are a pure function of their names, so they are made once and shared.
fs::path tiny_models() {
    static const TempDir dir;
    static const bool made = [] {
        const std::string command = "/usr/bin/python3 " +
                                    (golden_dir() / "tiny-models/make_tiny.py").string() + " " +
                                    dir.path().string() + " > /dev/null 2>&1";
        return std::system(command.c_str()) == 0;
    }();
    return made ? dir.path() : fs::path();
}

// Logits of the manifest's positions, (10, vocab).
std::vector<float> run(const fs::path& folder, const std::string& device_name, int chunk) {
    const Json manifest = load_json(golden_dir() / "tiny-models/manifest.json");
    const auto ids = manifest.at("ids").get<std::vector<int32_t>>();
    const auto positions = manifest.at("positions").get<std::vector<int64_t>>();
    const auto device = open_device(device_name).value();
    const auto stream = device->make_stream();
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const Model model(*stream, checkpoint, describe(checkpoint));
    const auto length = static_cast<int64_t>(ids.size());
    Session session(model, *stream, {.max_tokens = length, .chunk = chunk});
    std::vector<float> out;
    session.feed_all(ids, [&](int64_t first, ConstView logits) {
        for (int64_t r = 0; r < logits.shape[0]; ++r)
            if (std::find(positions.begin(), positions.end(), first + r) != positions.end())
                out.insert(out.end(), logits.row<float>(r), logits.row<float>(r) + logits.shape[1]);
    });
    return out;
}

void compare(const Case& c) {
    const SafetensorsFile file = SafetensorsFile::open(c.logits).value();
    const TensorInfo* info = file.find(c.tensor);
    ASSERT_NE(info, nullptr) << c.tensor;
    std::vector<float> want(static_cast<size_t>(info->numel()));
    std::memcpy(want.data(), file.view(*info).data, info->bytes);
    const auto rows = static_cast<size_t>(info->dims[0]),
               vocab = static_cast<size_t>(info->dims[1]);

    std::vector<std::string> devices = {"ref", "cpu"};
    for (const GpuDescription& g : list_gpus())
        if (g.problem.empty()) devices.push_back(g.device);
    for (const std::string& device : devices)
        for (const int chunk : {512, 7, 1}) {
            // One token at a time takes another path on a GPU alone.
            if (chunk == 1 && device == "cpu") continue;
            std::vector<float> got;
            if (!runs_on(device, [&] { got = run(c.folder, device, chunk); })) {
                std::printf("%s: an op has no kernel on %s\n", c.name.c_str(), device.c_str());
                break;
            }
            ASSERT_EQ(got.size(), want.size());
            EXPECT_LT(relative_error(got.data(), want.data(), want.size()), c.tolerance)
                << c.name << " on " << device << ", chunk " << chunk;
            for (size_t r = 0; r < rows; ++r) {
                const float* g = got.data() + r * vocab;
                const float* w = want.data() + r * vocab;
                const auto best = static_cast<size_t>(std::max_element(g, g + vocab) - g);
                const float top = *std::max_element(w, w + vocab);
                EXPECT_GT(w[best], top - 0.02f * std::fabs(top)) << c.name << " position " << r;
            }
            if (device == "ref") break;  // the slow oracle: one pass suffices
        }
}

// Three models have tokens whose experts are told apart by less than the rounding of cached keys
// and values to f16 (3e-5 of the router's score); there another expert is chosen than in float32.
double tolerance_of(const std::string& name) {
    const bool near_ties = name == "DeepseekV3ForCausalLM.noqlora" ||
                           name == "Gemma4ForConditionalGeneration.moe" ||
                           name == "GptOssForCausalLM";
    return near_ties ? 3e-2 : 2e-3;
}

class TinyModel : public testing::TestWithParam<std::string> {};

TEST_P(TinyModel, MatchesTransformers) {
    if (!fs::exists(golden_dir() / "tiny-models")) GTEST_SKIP() << "no golden data";
    if (!fs::exists(golden_dir() / "../spec/tiny-configs" / (GetParam() + ".json")))
        GTEST_SKIP() << "no tiny model of this architecture";
    const Json manifest = load_json(golden_dir() / "tiny-models/manifest.json");
    if (!manifest.at("models").contains(GetParam())) GTEST_SKIP() << "not among the golden models";
    const fs::path all = tiny_models();
    ASSERT_FALSE(all.empty()) << "make_tiny.py failed";
    compare({GetParam(), all / GetParam(), GetParam() + ".hf_fp32",
             golden_dir() / "tiny-models/logits.safetensors", tolerance_of(GetParam())});
}

// "Exaone4ForCausalLM" and its variants such as "Exaone4ForCausalLM.full".
std::vector<std::string> cases() {
    std::vector<std::string> names = known_architectures();
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(golden_dir() / "../spec/tiny-configs", none)) {
        const std::string name = entry.path().stem().string();
        const std::string architecture = name.substr(0, name.find('.'));
        const auto known = known_architectures();
        if (architecture != name &&
            std::find(known.begin(), known.end(), architecture) != known.end())
            names.push_back(name);
    }
    return names;
}

INSTANTIATE_TEST_SUITE_P(All, TinyModel, testing::ValuesIn(cases()), [](const auto& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
});

TEST(Exl3Models, MatchTheLogitsOfTheirDecodedWeights) {
    const fs::path folder = golden_dir() / "exl3-models";
    if (!fs::exists(folder)) GTEST_SKIP() << "no golden data";
    const auto known = known_architectures();
    int checked = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (!entry.is_directory()) continue;
        const auto architecture =
            HfConfig::load(entry.path() / "config.json").value().architecture();
        if (std::find(known.begin(), known.end(), architecture) == known.end()) continue;
        const std::string name = entry.path().filename().string();
        compare(
            {name, entry.path(), name + ".dequantized_fp32", folder / "logits.safetensors", 5e-3});
        ++checked;
    }
    EXPECT_GT(checked, 0);
}

}  // namespace
}  // namespace exl3::test
