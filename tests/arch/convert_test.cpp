// Golden tiny models of each family of layers through our own conversion to EXL3 and back: the
// result loads, gives the same logits whole and in pieces, and its decoded weights give the same
// again.
#include <gtest/gtest.h>

#include <algorithm>

#include "arch/arch.h"
#include "cpu/cpu.h"
#include "gen/session.h"
#include "quant/convert.h"
#include "quant/dequantize.h"
#include "support/golden.h"
#include "support/tiny_models.h"

namespace exl3::test {
namespace {

namespace fs = std::filesystem;

std::vector<int32_t> ids() {
    return load_json(golden_dir() / "tiny-models/manifest.json")
        .at("ids")
        .get<std::vector<int32_t>>();
}

/// The logits of every position.
std::vector<float> logits_of(Stream& s, const fs::path& folder, int chunk) {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const Model model(s, checkpoint, describe(checkpoint));
    Session session(model, s, {.max_tokens = 100, .chunk = chunk});
    std::vector<float> out;
    session.feed_all(ids(), [&](int64_t, ConstView logits) {
        for (int64_t r = 0; r < logits.shape[0]; ++r)
            out.insert(out.end(), logits.row<float>(r), logits.row<float>(r) + logits.shape[1]);
    });
    return out;
}

/// The relative error of the logits of the middle position, sorted by it. Whole texts do not serve
/// where experts are chosen: of random routers a few decisions are so near that rounding tips them.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
    const size_t positions = ids().size(), vocab = b.size() / positions;
    if (a.size() != b.size()) return 1e9;
    std::vector<double> errors;
    for (size_t i = 0; i < positions; ++i)
        errors.push_back(relative_error(a.data() + i * vocab, b.data() + i * vocab, vocab));
    std::sort(errors.begin(), errors.end());
    return errors[positions / 2];
}

class Convert : public testing::TestWithParam<std::string> {};

TEST_P(Convert, LoadsEqualsItselfInPiecesAndItsDecodedWeights) {
    const fs::path source = tiny_model(GetParam());
    if (source.empty()) GTEST_SKIP() << "no golden data";
    const TempDir dir;
    const auto device = cpu::open({.threads = 2});
    const auto stream = device->make_stream();
    const ConvertReport report = convert(*stream, {.source = source,
                                                   .output = dir.path() / "exl3",
                                                   .bits = 5,
                                                   .head_bits = 5,
                                                   .cal_rows = 2,
                                                   .cal_cols = 128});
    EXPECT_GT(report.tensors.size(), 3u);
    const auto whole = logits_of(*stream, dir.path() / "exl3", 512);
    EXPECT_LT(difference(logits_of(*stream, dir.path() / "exl3", 7), whole), 5e-3);
    // Far from the source by the rounding of weights, not by a matrix in a wrong place.
    EXPECT_LT(difference(whole, logits_of(*stream, source, 512)), 0.6);
    dequantize(
        *stream,
        {.source = dir.path() / "exl3", .output = dir.path() / "plain", .dtype = DType::f32});
    EXPECT_LT(difference(whole, logits_of(*stream, dir.path() / "plain", 512)), 5e-3);
    // Names and shapes are those of the source, so that other software finds its tensors.
    const Checkpoint before = Checkpoint::open(source),
                     after = Checkpoint::open(dir.path() / "plain");
    for (const auto& [name, entry] : before.tensors()) {
        const auto again = after.find(name);
        ASSERT_NE(again.info, nullptr) << name;
        EXPECT_EQ(again.info->dims, entry.info->dims) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Convert,
                         testing::Values("Qwen3NextForCausalLM", "Qwen3_5ForCausalLM",
                                         "OlmoHybridForCausalLM", "NemotronHForCausalLM.latent",
                                         "Lfm2MoeForCausalLM", "GptOssForCausalLM.padded",
                                         "Mistral3ForConditionalGeneration.mistral4",
                                         "Gemma4ForConditionalGeneration.ple", "AfmoeForCausalLM",
                                         "ApertusForCausalLM"),
                         [](const auto& info) {
                             std::string name = info.param;
                             std::replace(name.begin(), name.end(), '.', '_');
                             return name;
                         });

}  // namespace
}  // namespace exl3::test
