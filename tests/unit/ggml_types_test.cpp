// Blocks of every tensor type, decoded as the format's reference package does.
#include "io/ggml_types.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "support/golden.h"

namespace exl3 {
namespace {

using test::load_json;
using test::source_dir;

constexpr int64_t kBlocks = 4096;

// The same bytes as in tests/golden/make_gguf_data.py.
std::vector<uint8_t> blocks_of(const std::string& name, uint32_t type, size_t size) {
    static const std::map<std::string, std::vector<size_t>> halves = {
        {"Q4_0", {0}},      {"Q4_1", {0, 2}}, {"Q5_0", {0}},    {"Q5_1", {0, 2}}, {"Q8_0", {0}},
        {"Q2_K", {80, 82}}, {"Q3_K", {108}},  {"Q4_K", {0, 2}}, {"Q5_K", {0, 2}}, {"Q6_K", {208}},
        {"IQ1_S", {0}},     {"IQ2_XXS", {0}}, {"IQ2_XS", {0}},  {"IQ2_S", {0}},   {"IQ3_XXS", {0}},
        {"IQ3_S", {0}},     {"IQ4_NL", {0}},  {"IQ4_XS", {0}},  {"TQ1_0", {52}},  {"TQ2_0", {64}},
        {"F16", {0}}};
    std::vector<uint8_t> b(static_cast<size_t>(kBlocks) * size);
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<uint8_t>(noise64(type, i) >> 56);
    for (size_t at = 0; at < b.size(); at += size) {
        if (halves.contains(name))
            for (const size_t h : halves.at(name))
                b[at + h + 1] = static_cast<uint8_t>((b[at + h + 1] & 0x83) | 0x20);
        if (name == "BF16") b[at + 1] = static_cast<uint8_t>((b[at + 1] & 0x80) | 0x3c);
        if (name == "IQ1_M") b[at + 55] = static_cast<uint8_t>((b[at + 55] & 0x0f) | 0x20);
        if (name == "MXFP4") b[at] &= 0x7f;
    }
    return b;
}

std::string digest(const std::vector<float>& values) {
    uint64_t sum = 0;
    for (size_t i = 0; i < values.size(); ++i)
        sum += mix64(std::bit_cast<uint32_t>(values[i]) + (static_cast<uint64_t>(i) << 32));
    return fmt::format("{:016x}", sum);
}

TEST(GgmlTypes, BlocksDecodeAsTheReferenceDoes) {
    const Json golden = load_json(source_dir() / "tests/golden/data/gguf.json");
    int types = 0;
    for (const Json& c : golden.at("blocks")) {
        const auto name = c.at("name").get<std::string>();
        const GgmlLayout* layout = ggml_layout(c.at("type").get<uint32_t>());
        ASSERT_NE(layout, nullptr) << name;
        EXPECT_EQ(layout->name, name);
        ASSERT_EQ(layout->elements, c.at("elements").get<int>()) << name;
        ASSERT_EQ(layout->bytes, c.at("bytes").get<int>()) << name;
        const auto blocks =
            blocks_of(name, c.at("type").get<uint32_t>(), static_cast<size_t>(layout->bytes));
        std::vector<float> got(static_cast<size_t>(kBlocks * layout->elements));
        ggml_to_f32(*layout, blocks.data(), static_cast<int64_t>(got.size()), got.data());
        const Json& first = c.at("first");
        for (size_t i = 0; i < first.size(); ++i)
            ASSERT_EQ(got[i], first[i].get<float>()) << name << " element " << i;
        EXPECT_EQ(digest(got), c.at("digest").get<std::string>()) << name;
        ++types;
    }
    EXPECT_GE(types, 24);
}

TEST(GgmlTypes, Q8KHasItsScaleInF32) {
    const GgmlLayout& layout = *ggml_layout(15);
    std::vector<uint8_t> block(static_cast<size_t>(layout.bytes), 0xff);
    const float d = 0.3f;
    std::memcpy(block.data(), &d, sizeof d);
    for (size_t i = 0; i < 256; ++i) block[4 + i] = static_cast<uint8_t>(i);
    std::vector<float> y(256);
    ggml_to_f32(layout, block.data(), 256, y.data());
    for (int i = 0; i < 256; ++i)
        EXPECT_EQ(y[static_cast<size_t>(i)], d * static_cast<float>(i < 128 ? i : i - 256));
}

TEST(GgmlTypes, MicroscalingExponentsReachTheEndsOfF32) {
    const GgmlLayout& layout = *ggml_layout(39);
    std::vector<uint8_t> block(17, 0x77);  // 6 twice a byte
    std::vector<float> y(32);
    for (const int e : {0, 1, 2, 127, 254}) {
        block[0] = static_cast<uint8_t>(e);
        ggml_to_f32(layout, block.data(), 32, y.data());
        const double want = 6 * std::ldexp(1.0, e - 127);
        if (want > std::numeric_limits<float>::max())
            EXPECT_TRUE(std::isinf(y[31]));
        else
            EXPECT_EQ(y[31], static_cast<float>(want)) << e;
    }
}

TEST(GgmlTypes, OtherNumbersAreNoTypes) {
    for (const uint32_t t : {4u, 5u, 9u, 24u, 27u, 31u, 33u, 36u, 38u, 42u, 0xffffffffu})
        EXPECT_EQ(ggml_layout(t), nullptr) << t;
}

}  // namespace
}  // namespace exl3
