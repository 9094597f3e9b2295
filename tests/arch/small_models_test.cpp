// Every architecture on the committed subset of the golden tiny models: weights are made here by
// the rule of the golden data, logits come from transformers in float32.
#include "arch/arch.h"
#include "backends/backends.h"
#include "gen/session.h"
#include "support/golden.h"
#include "support/temp_folder.h"
#include "support/tiny_weights.h"

namespace exl3::test {
namespace {

namespace fs = std::filesystem;

fs::path subset() {
    return source_dir() / "tests/golden/data/tiny";
}

// Two models have tokens whose experts are told apart by less than the rounding of cached keys and
// values to f16 (3e-5 of the router's score); there another expert is chosen than in float32.
double tolerance_of(const std::string& name) {
    const bool near_ties =
        name == "DeepseekV3ForCausalLM.noqlora" || name == "Gemma4ForConditionalGeneration.moe";
    return near_ties ? 3e-2 : 2e-3;
}

class SmallModel : public testing::TestWithParam<std::string> {};

std::vector<float> logits_of(const fs::path& folder, const Json& golden, int chunk) {
    const auto device = open_device("cpu").value();
    const auto stream = device->make_stream();
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const Model model(*stream, checkpoint, describe(checkpoint));
    const auto ids = golden.at("ids").get<std::vector<int32_t>>();
    const auto positions = golden.at("positions").get<std::vector<int64_t>>();
    const auto kept = static_cast<int64_t>(golden.at("logits")[0].size());
    Session session(model, *stream,
                    {.max_tokens = static_cast<int64_t>(ids.size()), .chunk = chunk});
    std::vector<float> out;
    session.feed_all(ids, [&](int64_t first, ConstView logits) {
        for (int64_t r = 0; r < logits.shape[0]; ++r)
            if (std::find(positions.begin(), positions.end(), first + r) != positions.end())
                out.insert(out.end(), logits.row<float>(r), logits.row<float>(r) + kept);
    });
    return out;
}

TEST_P(SmallModel, MatchesTransformers) {
    const Json golden = load_json(subset() / (GetParam() + ".json"));
    const auto known = known_architectures();
    const auto architecture = golden.at("config").at("architectures")[0].get<std::string>();
    if (std::find(known.begin(), known.end(), architecture) == known.end())
        GTEST_SKIP() << architecture << " is not known to this build";
    const TempFolder folder;
    write_tiny_model(golden, folder.path());
    std::vector<float> want;
    for (const Json& row : golden.at("logits"))
        for (const Json& v : row) want.push_back(v.get<float>());
    for (const int chunk : {512, 7}) {
        const std::vector<float> got = logits_of(folder.path(), golden, chunk);
        ASSERT_EQ(got.size(), want.size());
        EXPECT_LT(relative_error(got.data(), want.data(), want.size()), tolerance_of(GetParam()))
            << "chunk " << chunk;
    }
}

std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(subset()))
        all.push_back(entry.path().stem().string());
    std::sort(all.begin(), all.end());
    return all;
}

INSTANTIATE_TEST_SUITE_P(All, SmallModel, testing::ValuesIn(names()), [](const auto& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
});

}  // namespace
}  // namespace exl3::test
