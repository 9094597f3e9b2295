#include "io/gguf.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "support/gguf_bytes.h"
#include "support/temp_folder.h"

namespace exl3 {
namespace {

using test::error_of;
using test::GgufBytes;
using test::TempFolder;

std::string parse_error(const std::string& bytes) {
    const auto r = parse_gguf_header(bytes, "m.gguf");
    return r ? "" : r.error().what();
}

GgufBytes sample() {
    GgufBytes g;
    g.set("general.architecture", "llama")
        .set("llama.block_count", 2)
        .set("eps", 1e-5f)
        .set("flag", true)
        .set("words", std::vector<std::string>{"one", "", "drei"})
        .set("numbers", std::vector<int32_t>{3, -1, 7})
        .set("scores", std::vector<float>{0.5f, -2})
        .value("huge", 10, GgufBytes::raw<uint64_t>(~uint64_t{0}))
        .value("small", 1, GgufBytes::raw<int8_t>(-5))
        .value("double", 12, GgufBytes::raw(0.1));
    g.tensor("a", {2, 3}, {1, 2, 3, 4, 5, 6});
    g.tensor("q", 8, {1, 32}, std::string(34, '\1'));
    g.tensor("odd", 24, {5}, "12345");  // i8: known to the format, not decoded here
    return g;
}

TEST(Gguf, KeysAndTensorsAreRead) {
    const TempFolder folder;
    const auto path = folder.write("m.gguf", sample().str());
    const GgufModel m = GgufModel::open(path).value();
    EXPECT_EQ(m.get<std::string>("general.architecture"), "llama");
    EXPECT_EQ(m.get<int>("llama.block_count"), 2);
    EXPECT_EQ(m.get<double>("eps"), 1e-5) << "as a decimal, not as the nearest f32";
    EXPECT_EQ(m.get<double>("llama.block_count"), 2.0);
    EXPECT_TRUE(m.get<bool>("flag"));
    EXPECT_EQ(m.get<int>("small"), -5);
    EXPECT_EQ(m.get<double>("double"), 0.1);
    EXPECT_EQ(m.get<int>("missing", 9), 9);
    EXPECT_EQ(m.strings("words"), (std::vector<std::string_view>{"one", "", "drei"}));
    EXPECT_EQ(m.integers("numbers"), (std::vector<int64_t>{3, -1, 7}));
    EXPECT_EQ(m.numbers("scores"), (std::vector<double>{0.5, -2}));
    EXPECT_TRUE(m.strings("missing").empty());

    const GgufTensor* a = m.find("a");
    ASSERT_NE(a, nullptr);
    EXPECT_EQ(a->dims, (std::vector<int64_t>{2, 3}));
    float last = 0;
    std::memcpy(&last, a->data + 20, sizeof last);
    EXPECT_EQ(last, 6);
    EXPECT_EQ(m.find("q")->layout->name, "Q8_0");
    EXPECT_EQ(m.find("q")->bytes, 34u);
    EXPECT_EQ(m.find("odd")->layout, nullptr);
    EXPECT_EQ(m.find("b"), nullptr);
}

TEST(Gguf, VersionTwoIsTheSame) {
    GgufBytes g = sample();
    g.version = 2;
    EXPECT_EQ(parse_error(g.str()), "");
}

TEST(Gguf, WrongTypesNameTheKey) {
    const TempFolder folder;
    const GgufModel m = GgufModel::open(folder.write("m.gguf", sample().str())).value();
    const auto says = [&](auto&& f, const char* part) {
        const std::string e = error_of(f);
        EXPECT_NE(e.find("m.gguf: key '"), std::string::npos) << e;
        EXPECT_NE(e.find(part), std::string::npos) << e;
    };
    says([&] { m.get<int>("nothing"); }, "'nothing': missing");
    says([&] { m.get<int>("flag"); }, "found bool, needed an integer");
    says([&] { m.get<int64_t>("huge"); }, "'huge': found u64");
    says([&] { m.get<bool>("eps"); }, "found f32, needed a bool");
    says([&] { m.get<double>("words"); }, "found array, needed a number");
    says([&] { m.get<std::string>("eps"); }, "found f32, needed a string");
    says([&] { m.strings("numbers"); }, "found an array of i32, needed strings");
    says([&] { m.integers("words"); }, "found an array of string, needed integers");
    says([&] { m.numbers("eps"); }, "found f32, needed an array");
}

TEST(Gguf, WhatIsWrongIsNamed) {
    const auto one_tensor = [](const std::string& name, uint32_t rank, std::vector<uint64_t> dims,
                               uint32_t type, uint64_t offset) {
        std::string info = GgufBytes::text(name) + GgufBytes::raw(rank);
        for (const uint64_t d : dims) info += GgufBytes::raw(d);
        return "GGUF" + GgufBytes::raw<uint32_t>(3) + GgufBytes::raw<uint64_t>(1) +
               GgufBytes::raw<uint64_t>(0) + info + GgufBytes::raw(type) + GgufBytes::raw(offset) +
               std::string(256, '\0');
    };
    const auto one_key = [](const std::string& bytes) {
        return "GGUF" + GgufBytes::raw<uint32_t>(3) + GgufBytes::raw<uint64_t>(0) +
               GgufBytes::raw<uint64_t>(1) + bytes;
    };
    const auto aligned = [](uint32_t v) {
        GgufBytes g;
        g.set("general.alignment", v);
        return g.str();
    };
    GgufBytes twice;
    twice.set("k", 1).set("k", 2);
    const struct {
        std::string bytes;
        const char* says;
    } cases[] = {
        {"", "found no 'GGUF' at the start"},
        {"GGML0000", "found no 'GGUF' at the start"},
        {"GGUF", "the version needs 4 bytes, file ends after 0"},
        {"GGUF" + GgufBytes::raw<uint32_t>(1), "found version 1, needed 2 or 3"},
        {"GGUF" + GgufBytes::raw<uint32_t>(4), "found version 4, needed 2 or 3"},
        {"GGUF" + GgufBytes::raw<uint32_t>(0x03000000), "is big-endian"},
        {one_key(GgufBytes::text("")), "found a key that is empty"},
        {one_key(GgufBytes::text("a b")), "not printable ASCII"},
        {one_key(GgufBytes::raw<uint64_t>(70000)), "found a length of 70000, needed at most 65535"},
        {one_key(GgufBytes::text("k") + GgufBytes::raw<uint32_t>(13)),
         "key 'k': found the value type 13"},
        {one_key(GgufBytes::text("k") + GgufBytes::raw<uint32_t>(4)), "pass the end of the file"},
        {one_key(GgufBytes::text("k") + GgufBytes::raw<uint32_t>(8) +
                 GgufBytes::raw<uint64_t>(~uint64_t{0})),
         "key 'k' needs 18446744073709551615 bytes"},
        {one_key(GgufBytes::text("k") + GgufBytes::raw<uint32_t>(9) + GgufBytes::raw<uint32_t>(10) +
                 GgufBytes::raw<uint64_t>(uint64_t{1} << 61)),
         "key 'k': 2305843009213693952 values of 8 bytes pass the end"},
        {one_key(GgufBytes::text("k") + GgufBytes::raw<uint32_t>(7) + "\2"),
         "found a bool that is not 0 or 1"},
        {twice.str(), "key 'k': found twice"},
        {aligned(0), "key 'general.alignment': found 0, needed a multiple of 8"},
        {aligned(12), "found 12, needed a multiple of 8"},
        {one_tensor("t", 5, {1, 1, 1, 1, 1}, 0, 0), "tensor 't'"},
        {one_tensor("t", 1, {0}, 0, 0), "found a dimension of 0"},
        {one_tensor("t", 2, {uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0), "found a dimension of"},
        {one_tensor("t", 1, {33}, 2, 0), "Q4_0 packs 32 elements, found rows of 33"},
        {one_tensor("t", 1, {4}, 0, 7), "found the offset 7, needed a multiple of 32"},
        {one_tensor("t", 1, {4}, 0, ~uint64_t{31}), "file holds"},
        {one_tensor("t", 1, {400}, 0, 0), "needs 1600 bytes at offset 0"},
        {one_tensor("", 1, {4}, 0, 0), "found a tensor name that is empty"},
        {one_tensor("a\nb", 1, {4}, 0, 0), "not printable ASCII"},
    };
    for (const auto& c : cases) {
        const std::string e = parse_error(c.bytes);
        EXPECT_NE(e.find("m.gguf: "), std::string::npos) << e;
        EXPECT_NE(e.find(c.says), std::string::npos) << "wanted: " << c.says << "\ngot: " << e;
    }
}

TEST(Gguf, NestedArraysAreWalkedToALimit) {
    const auto nested = [](int depth) {
        std::string inner = GgufBytes::raw<uint32_t>(4) + GgufBytes::raw<uint64_t>(0);
        for (int i = 1; i < depth; ++i)
            inner = GgufBytes::raw<uint32_t>(9) + GgufBytes::raw<uint64_t>(1) + inner;
        GgufBytes g;
        g.value("k", 9, inner).set("after", 5);
        return g.str();
    };
    EXPECT_EQ(parse_error(nested(1)), "");
    EXPECT_EQ(parse_error(nested(4)), "");
    EXPECT_NE(parse_error(nested(60)).find("nested deeper"), std::string::npos);
}

TEST(Gguf, TensorsMayNotShareBytes) {
    GgufBytes g;
    g.tensor("a", {16}, std::vector<float>(16));
    std::string bytes = g.str();
    // The same entry again under another name.
    const std::string entry = GgufBytes::text("a");
    const size_t at = bytes.find(entry, 24);
    std::string info = bytes.substr(at, 8 + 1 + 4 + 8 + 4 + 8);
    std::string second = info;
    second[8] = 'b';
    std::string two = "GGUF" + GgufBytes::raw<uint32_t>(3) + GgufBytes::raw<uint64_t>(2) +
                      GgufBytes::raw<uint64_t>(0) + info + second + std::string(256, '\0');
    EXPECT_NE(parse_error(two).find("tensor 'b'"), std::string::npos) << parse_error(two);
    EXPECT_NE(parse_error(two).find("overlaps tensor 'a'"), std::string::npos);
}

TEST(Gguf, EveryTruncationIsAnErrorWithAByte) {
    const std::string whole = sample().str();
    // The last tensor is of a type whose size is not known here.
    const size_t known = parse_gguf_header(whole, "m.gguf").value().tensors.back().offset;
    for (size_t n = 0; n < known - 30; ++n) {
        const auto r = parse_gguf_header(whole.substr(0, n), "m.gguf");
        ASSERT_FALSE(r) << n;
        EXPECT_TRUE(r.error().where().offset) << n;
    }
}

TEST(Gguf, FlippedBytesAreReadOrRefused) {
    const std::string whole = sample().str();
    Random random(7);
    const TempFolder folder;
    for (int trial = 0; trial < 3000; ++trial) {
        std::string bytes = whole;
        for (uint64_t i = 0; i <= random.below(3); ++i)
            bytes[random.below(bytes.size())] = static_cast<char>(random.next());
        const auto r = parse_gguf_header(bytes, "m.gguf");
        if (!r) continue;
        auto header = r;
        for (const GgufTensor& t : header->tensors) EXPECT_LE(t.offset + t.bytes, bytes.size());
    }
}

TEST(Gguf, PartsOfASplitModelAreOne) {
    GgufBytes first, second;
    first.set("split.count", 2).set("split.tensors.count", 2).set("name", "x");
    first.tensor("a", {2}, {1, 2});
    second.tensor("b", {3}, {3, 4, 5});
    const TempFolder folder;
    const auto one = folder.write("m-00001-of-00002.gguf", first.str());
    EXPECT_NE(error_of([&] { GgufModel::open(one).value(); }).find("m-00002-of-00002.gguf"),
              std::string::npos);
    const auto two = folder.write("m-00002-of-00002.gguf", second.str());
    for (const auto& path : {one, two}) {
        const GgufModel m = GgufModel::open(path).value();
        EXPECT_EQ(m.tensors().size(), 2u);
        EXPECT_EQ(m.get<std::string>("name"), "x");
        EXPECT_EQ(m.where(*m.find("b")).file, two.string());
    }
    folder.write("m-00002-of-00002.gguf", first.str());
    EXPECT_NE(error_of([&] { GgufModel::open(one).value(); }).find("tensor 'a'"),
              std::string::npos);
    const auto alone = folder.write("renamed.gguf", first.str());
    EXPECT_NE(error_of([&] { GgufModel::open(alone).value(); }).find("key 'split.count'"),
              std::string::npos);
}

TEST(Gguf, AMissingFileIsNamed) {
    EXPECT_NE(error_of([] { GgufModel::open("/no/such.gguf").value(); }).find("/no/such.gguf"),
              std::string::npos);
}

}  // namespace
}  // namespace exl3
