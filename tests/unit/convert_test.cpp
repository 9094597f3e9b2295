#include "io/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/random.h"
#include "io/validate.h"
#include "support/temp_folder.h"

namespace exl3 {
namespace {

using test::error_of;
using test::TempFolder;

/// Values written by hand from the definition: sign, exponent, mantissa, bias.
double minifloat(int bits, int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int e = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    const int m = bits & ((1 << mantissa_bits) - 1);
    const double sign = bits >> (exponent_bits + mantissa_bits) ? -1 : 1;
    const double unit = std::ldexp(1.0, -mantissa_bits);
    return sign * (e == 0 ? std::ldexp(m * unit, 1 - bias) : std::ldexp(1 + m * unit, e - bias));
}

float one(DType dtype, uint8_t byte) {
    float out = 0;
    convert_to_f32(&byte, dtype, 1, &out);
    return out;
}

TEST(Convert, E4m3HasNoInfinitiesAndTwoNans) {
    for (int b = 0; b < 256; ++b) {
        const float v = one(DType::f8_e4m3, static_cast<uint8_t>(b));
        if ((b & 0x7f) == 0x7f)
            EXPECT_TRUE(std::isnan(v)) << b;
        else
            EXPECT_EQ(v, minifloat(b, 4, 3)) << b;
    }
    EXPECT_EQ(one(DType::f8_e4m3, 0x7e), 448);
    EXPECT_EQ(one(DType::f8_e4m3, 0x01), 0x1p-9f);
    EXPECT_TRUE(std::signbit(one(DType::f8_e4m3, 0x80)));
}

TEST(Convert, E5m2IsLikeIeee) {
    for (int b = 0; b < 256; ++b) {
        const float v = one(DType::f8_e5m2, static_cast<uint8_t>(b));
        if ((b & 0x7f) > 0x7c)
            EXPECT_TRUE(std::isnan(v)) << b;
        else if ((b & 0x7f) == 0x7c)
            EXPECT_EQ(v, b & 0x80 ? -INFINITY : INFINITY);
        else
            EXPECT_EQ(v, minifloat(b, 5, 2)) << b;
    }
    EXPECT_EQ(one(DType::f8_e5m2, 0x7b), 57344);
}

TEST(Convert, E8m0IsAPowerOfTwo) {
    for (int b = 0; b < 255; ++b)
        EXPECT_EQ(one(DType::f8_e8m0, static_cast<uint8_t>(b)), std::ldexp(1.0, b - 127)) << b;
    EXPECT_TRUE(std::isnan(one(DType::f8_e8m0, 255)));
}

TEST(Convert, EveryHalfAtAnyAlignment) {
    std::vector<char> bytes(2 * 65536 + 1);
    std::vector<float> out(65536);
    for (uint32_t h = 0; h < 65536; ++h) std::memcpy(&bytes[1 + 2 * h], &h, 2);
    convert_to_f32(bytes.data() + 1, DType::f16, 65536, out.data());
    for (uint32_t h = 0; h < 65536; ++h)
        ASSERT_EQ(std::bit_cast<uint32_t>(out[h]),
                  std::bit_cast<uint32_t>(to_float(f16{static_cast<uint16_t>(h)})))
            << h;
    convert_to_f32(bytes.data() + 1, DType::bf16, 65536, out.data());
    for (uint32_t h = 0; h < 65536; ++h) ASSERT_EQ(std::bit_cast<uint32_t>(out[h]), h << 16) << h;
}

TEST(Convert, WideFloatsAtAnyAlignment) {
    const double d[2] = {1.0 / 3, -1e-40};
    char bytes[17];
    float out[4] = {};
    std::memcpy(bytes + 1, d, 16);
    convert_to_f32(bytes + 1, DType::f64, 2, out);
    EXPECT_EQ(out[0], static_cast<float>(d[0]));
    EXPECT_EQ(out[1], static_cast<float>(d[1]));
    const float f[3] = {1.5f, -0.0f, 1e-45f};
    std::memcpy(bytes + 1, f, 12);
    convert_to_f32(bytes + 1, DType::f32, 3, out);
    EXPECT_EQ(std::memcmp(out, f, 12), 0);
    convert_to_f32(nullptr, DType::f32, 0, out);
}

/// A checkpoint of the tensors given; their bytes must live as long as the call.
struct Stored {
    TempFolder folder;
    Checkpoint checkpoint;
    explicit Stored(const std::vector<TensorToWrite>& tensors, std::string_view config = "{}")
        : checkpoint((folder.write("config.json", config),
                      write_safetensors(folder / "m.safetensors", tensors),
                      Checkpoint::open(folder.path()))) {}
    std::string at(std::string_view tensor) const {
        return (folder / "m.safetensors").string() + ": tensor '" + std::string(tensor) +
               "': at byte " + std::to_string(checkpoint.find(tensor).info->offset) + ": ";
    }
};

/// A (rows, columns) e4m3 weight of random finite bytes and what each becomes.
struct Weight {
    int64_t rows, columns;
    std::vector<uint8_t> bytes;
    Weight(int64_t r, int64_t c) : rows(r), columns(c), bytes(static_cast<size_t>(r * c)) {
        Random random(5);
        for (auto& b : bytes) {
            b = static_cast<uint8_t>(random.next());
            if ((b & 0x7f) == 0x7f) b ^= 1;
        }
    }
    TensorToWrite tensor(std::string name, std::vector<int64_t> dims = {}) const {
        if (dims.empty()) dims = {rows, columns};
        return {std::move(name), DType::f8_e4m3, std::move(dims), bytes.data()};
    }
    float at(int64_t r, int64_t c) const {
        return static_cast<float>(minifloat(bytes[static_cast<size_t>(r * columns + c)], 4, 3));
    }
    template <typename Scale>
    void expect(const std::vector<float>& out, Scale scale) const {
        ASSERT_EQ(out.size(), bytes.size());
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c)
                ASSERT_EQ(out[static_cast<size_t>(r * columns + c)], at(r, c) * scale(r, c))
                    << r << ", " << c;
    }
};

TEST(ReadF32, Fp8WithoutAScaleIsPlain) {
    const Weight w(3, 5);
    const Stored s({w.tensor("x.weight")});
    w.expect(read_f32(s.checkpoint, "x.weight"), [](int64_t, int64_t) { return 1.0f; });
}

TEST(ReadF32, OneScaleForTheTensor) {
    const Weight w(3, 5);
    const float scale = 0.37f;
    for (const auto& dims : {std::vector<int64_t>{}, {1}, {1, 1}, {1, 1, 1}})
        for (const char* name : {"x.weight_scale", "x.weight_scale_inv"}) {
            const Stored s({w.tensor("x.weight"), {name, DType::f32, dims, &scale}});
            w.expect(read_f32(s.checkpoint, "x.weight"), [&](int64_t, int64_t) { return scale; });
        }
}

TEST(ReadF32, OneScalePerRow) {
    const Weight w(3, 5);
    const std::vector<float> scales = {0.5f, 3, 7};
    for (const auto& dims : {std::vector<int64_t>{3}, {3, 1}}) {
        const Stored s({w.tensor("x.weight"), {"x.weight_scale", DType::f32, dims, scales.data()}});
        w.expect(read_f32(s.checkpoint, "x.weight"),
                 [&](int64_t r, int64_t) { return scales[static_cast<size_t>(r)]; });
    }
}

TEST(ReadF32, OneScalePerBlockWithPartialBlocksAtTheEdges) {
    const Weight w(200, 300);
    std::vector<float> scales;
    for (int i = 0; i < 6; ++i) scales.push_back(0.1f * static_cast<float>(i + 1));
    for (const char* name : {"x.weight_scale_inv", "x.weight_scale", "x.scale"}) {
        const Stored s({w.tensor("x.weight"), {name, DType::f32, {2, 3}, scales.data()}});
        w.expect(read_f32(s.checkpoint, "x.weight"), [&](int64_t r, int64_t c) {
            return scales[static_cast<size_t>(r / 128 * 3 + c / 128)];
        });
    }
}

TEST(ReadF32, TheConfigMayGiveAnotherBlockSize) {
    const Weight w(7, 9);
    const std::vector<float> scales = {1, 2, 3, 4, 5, 6};
    const Stored s(
        {w.tensor("x.weight"), {"x.weight_scale_inv", DType::f32, {2, 3}, scales.data()}},
        R"({"quantization_config":{"weight_block_size":[4,4]}})");
    w.expect(read_f32(s.checkpoint, "x.weight"),
             [&](int64_t r, int64_t c) { return scales[static_cast<size_t>(r / 4 * 3 + c / 4)]; });
    const Stored bad(
        {w.tensor("x.weight"), {"x.weight_scale_inv", DType::f32, {2, 3}, scales.data()}},
        R"({"quantization_config":{"weight_block_size":[0,4]}})");
    EXPECT_NE(error_of([&] {
                  read_f32(bad.checkpoint, "x.weight");
              }).find("key 'quantization_config.weight_block_size': found"),
              std::string::npos);
}

TEST(ReadF32, PowersOfTwoAsScalesOfAGrid) {
    const Weight w(4, 64);
    const std::vector<uint8_t> scales = {127, 128, 120, 130, 127, 127, 126, 1};
    const Stored s({w.tensor("x.weight"), {"x.scale", DType::f8_e8m0, {4, 2}, scales.data()}});
    w.expect(read_f32(s.checkpoint, "x.weight"), [&](int64_t r, int64_t c) {
        return std::ldexp(1.0f, scales[static_cast<size_t>(r * 2 + c / 32)] - 127);
    });
}

TEST(ReadF32, OneScalePerExpertOfAStack) {
    const Weight w(6, 5);
    const std::vector<float> scales = {2, 0.25f};
    for (const auto& dims : {std::vector<int64_t>{2}, {2, 1, 1}}) {
        const Stored s({w.tensor("experts.up_proj", {2, 3, 5}),
                        {"experts.up_proj_scale_inv", DType::f32, dims, scales.data()}});
        w.expect(read_f32(s.checkpoint, "experts.up_proj"),
                 [&](int64_t r, int64_t) { return scales[static_cast<size_t>(r / 3)]; });
    }
}

TEST(ReadF32, BlocksOfEveryExpertOfAStack) {
    const Weight w(2 * 130, 129);
    std::vector<float> scales;
    for (int i = 0; i < 8; ++i) scales.push_back(static_cast<float>(1 + i));
    const Stored s({w.tensor("experts.up_proj", {2, 130, 129}),
                    {"experts.up_proj_scale_inv", DType::f32, {2, 2, 2}, scales.data()}});
    w.expect(read_f32(s.checkpoint, "experts.up_proj"), [&](int64_t r, int64_t c) {
        return scales[static_cast<size_t>(r / 130 * 4 + r % 130 / 128 * 2 + c / 128)];
    });
}

TEST(ReadF32, AScaleBesideAWeightThatIsNotFp8IsNotItsScale) {
    const float x = 3, scale = 2;
    const Stored s({{"x.weight", DType::f32, {1}, &x}, {"x.scale", DType::f32, {1}, &scale}});
    EXPECT_EQ(read_f32(s.checkpoint, "x.weight"), std::vector<float>{3});
}

TEST(ReadF32, WhatCannotBeReadIsNamed) {
    const Weight w(3, 5);
    const float scale[8] = {};
    const int32_t i = 0;
    const Stored s({w.tensor("a.weight"),
                    {"a.weight_scale", DType::f32, {4}, scale},
                    w.tensor("b.weight"),
                    {"b.weight_scale", DType::f32, {}, scale},
                    {"b.weight_scale_inv", DType::f32, {}, scale},
                    w.tensor("c.weight"),
                    {"c.weight_scale", DType::i32, {}, &i},
                    w.tensor("d.weight"),
                    {"d.weight_scale", DType::f32, {0}, nullptr},
                    w.tensor("e.weight", {15}),
                    {"e.weight_scale", DType::f32, {2, 4}, scale},
                    {"marker", DType::i32, {}, &i}});
    const auto error = [&](const char* name) {
        return error_of([&] { read_f32(s.checkpoint, name); });
    };
    EXPECT_EQ(error("a.weight"), s.at("a.weight_scale") +
                                     "found the shape (4), needed one that scales a.weight of "
                                     "shape (3, 5): one number, or one per row or block");
    EXPECT_EQ(error("b.weight"), s.at("b.weight") +
                                     "found both 'b.weight_scale' and 'b.weight_scale_inv', "
                                     "needed one scale");
    EXPECT_EQ(error("c.weight"), s.at("c.weight_scale") + "found i32, needed a float dtype");
    EXPECT_NE(error("d.weight").find("found the shape (0)"), std::string::npos);
    EXPECT_NE(error("e.weight").find("found the shape (2, 4)"), std::string::npos);
    EXPECT_EQ(error("marker"), s.at("marker") + "found i32, needed a float dtype");
    EXPECT_NE(error("none").find("tensor 'none': found no such tensor"), std::string::npos);
}

TEST(ReadF32, ScalarsAndEmptyTensors) {
    const uint8_t byte = 0x38;  // 1
    const float scale = 5;
    const Stored s({{"x", DType::f8_e4m3, {}, &byte},
                    {"x_scale", DType::f32, {}, &scale},
                    {"none", DType::f8_e4m3, {0, 5}, nullptr},
                    {"none_scale", DType::f32, {7}, std::vector<float>(7).data()}});
    EXPECT_EQ(read_f32(s.checkpoint, "x"), std::vector<float>{5});
    EXPECT_TRUE(read_f32(s.checkpoint, "none").empty());
}

TEST(RequireFinite, NamesTheByteOfTheFirstBadElement) {
    // Around the edges of the blocks that are looked at together, and not aligned to anything.
    for (const int64_t n : {1, 7, 511, 512, 513, 2000})
        for (const int64_t bad : {int64_t{0}, n / 2, n - 1}) {
            const uint8_t odd = 0;
            std::vector<f16> h(static_cast<size_t>(n), to_f16(65504.0f));
            std::vector<bf16> b(static_cast<size_t>(n), to_bf16(-3e38f));
            std::vector<float> f(static_cast<size_t>(n), 1e-45f);
            const std::vector<TensorToWrite> tensors = {{"odd", DType::u8, {}, &odd},
                                                        {"h", DType::f16, {n}, h.data()},
                                                        {"b", DType::bf16, {n}, b.data()},
                                                        {"f", DType::f32, {n}, f.data()}};
            const Stored good(tensors);
            for (const char* name : {"h", "b", "f"})
                ASSERT_EQ(error_of([&] { require_finite(good.checkpoint, name); }), "");
            h[static_cast<size_t>(bad)].bits = 0xfc01;  // a NaN
            b[static_cast<size_t>(bad)].bits = 0xff80;  // minus infinity
            f[static_cast<size_t>(bad)] = INFINITY;
            if (bad + 1 < n) h[static_cast<size_t>(n - 1)].bits = 0x7c00;
            const Stored s(tensors);
            const auto error = [&](const char* name, const char* what, size_t size) {
                Where where = s.checkpoint.where(name);
                *where.offset += static_cast<uint64_t>(bad) * size;
                ASSERT_EQ(error_of([&] { require_finite(s.checkpoint, name); }),
                          Error(Errc::invalid_file, where,
                                std::string("found ") + what + " as element " +
                                    std::to_string(bad) + ", needed finite numbers")
                              .what());
            };
            error("h", "NaN", 2);
            error("b", "an infinity", 2);
            error("f", "an infinity", 4);
        }
}

TEST(RequireFinite, OtherDtypesAndMissingTensorsAreErrors) {
    const int32_t i = 0;
    const Stored s({{"i", DType::i32, {}, &i}});
    EXPECT_EQ(error_of([&] { require_finite(s.checkpoint, "i"); }),
              s.at("i") + "found i32, needed f16, bf16 or f32");
    EXPECT_NE(error_of([&] { require_finite(s.checkpoint, "x"); }), "");
}

}  // namespace
}  // namespace exl3
