// Layers quantized by ExLlamaV3 1.4.1: decoding is bit-exact with its inner matrix, and the layer
// agrees with x W in double for its reconstructed weight.
#include <filesystem>

#include "io/safetensors.h"
#include "support/devices.h"
#include "support/golden.h"
#include "trellis/tile.h"

namespace exl3::test {
namespace {

/// One quantized layer, e.g. "mul1.k4", with what the converter said about it. Views into the file,
/// whose tensors have any alignment, except those that the test reads element by element.
struct Layer {
    std::string name;
    Codebook codebook;
    int bits = 0;
    ConstView trellis, suh, svh;
    std::vector<uint16_t> inner;
    std::vector<float> weight, x;
    int64_t k = 0, n = 0, rows = 0;
};

std::vector<uint16_t> halves(ConstView v) {
    std::vector<uint16_t> h(static_cast<size_t>(v.shape.numel()));
    std::memcpy(h.data(), v.data, h.size() * sizeof h[0]);
    return h;
}
std::vector<float> floats(ConstView v) {
    std::vector<float> f;
    for (const uint16_t h : halves(v)) f.push_back(to_float(f16{h}));
    return f;
}

std::vector<Layer> layers_of(const SafetensorsFile& file) {
    std::vector<Layer> layers;
    for (const TensorInfo& info : file.tensors()) {
        if (!info.name.ends_with(".trellis")) continue;
        const std::string name = info.name.substr(0, info.name.rfind('.'));
        const auto part = [&](const char* suffix) {
            return file.view(*file.find(name + "." + suffix));
        };
        layers.push_back({.name = name,
                          .codebook = codebook_named(name.substr(0, name.find('.'))).value(),
                          .bits = static_cast<int>(info.dims[2] / kTile),
                          .trellis = part("trellis"),
                          .suh = part("suh"),
                          .svh = part("svh"),
                          .inner = halves(part("inner_fp16")),
                          .weight = floats(part("weight_fp32")),
                          .x = floats(part("x")),
                          .k = part("suh").shape[0],
                          .n = part("svh").shape[0],
                          .rows = part("x").shape[0]});
    }
    return layers;
}

void expect_same_bits(Stream& s, Arena& arena, const Layer& layer, ConstView packed) {
    const View y = arena.zeros({layer.k, layer.n}, DType::f16);
    ops::exl3_decode(s, {.packed = packed, .y = y, .codebook = layer.codebook, .bits = layer.bits});
    s.synchronize();
    std::vector<uint16_t> got(layer.inner.size());
    s.copy(y, dense(got.data(), DType::f16, y.shape));
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], layer.inner[i]) << "element " << i;
}

void expect_same_product(Stream& s, Arena& arena, const Layer& layer, ConstView packed) {
    const auto [k, n, rows] = std::tuple(layer.k, layer.n, layer.rows);
    const View y = arena.zeros({rows, n});
    ops::exl3_linear(s, {.x = arena.raw(layer.x.data(), DType::f32, {rows, k}),
                         .packed = packed,
                         .suh = arena.raw(layer.suh.data, DType::f16, {k}),
                         .svh = arena.raw(layer.svh.data, DType::f16, {n}),
                         .y = y,
                         .codebook = layer.codebook,
                         .bits = layer.bits});
    s.synchronize();
    std::vector<float> got(static_cast<size_t>(rows * n)), want;
    s.copy(y, dense(got.data(), DType::f32, y.shape));
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t i = 0; i < k; ++i)
                sum += static_cast<double>(layer.x[static_cast<size_t>(r * k + i)]) *
                       layer.weight[static_cast<size_t>(i * n + j)];
            want.push_back(static_cast<float>(sum));
        }
    // The golden weight is itself rounded to f16: 3e-4. docs/design/cpu.md has what the CPU adds.
    EXPECT_LT(relative_error(got.data(), want.data(), want.size()),
              s.device().name() == "ref" ? 4e-4 : 6e-4);
}

void check_file(const std::filesystem::path& path) {
    const SafetensorsFile file = SafetensorsFile::open(path).value();
    const std::vector<Layer> layers = layers_of(file);
    ASSERT_FALSE(layers.empty());
    for (const auto& [name, device] : all_devices())
        for (const Layer& layer : layers) {
            SCOPED_TRACE(name + ", " + layer.name);
            const auto stream = device->make_stream();
            Arena arena(*device, *stream, 1);
            const View packed = arena.zeros(layer.trellis.shape, DType::i16);
            ops::exl3_repack(*stream,
                             {.trellis = layer.trellis, .packed = packed, .bits = layer.bits});
            expect_same_bits(*stream, arena, layer, packed);
            expect_same_product(*stream, arena, layer, packed);
        }
}

TEST(Exl3LinearGolden, CommittedLayers) {
    check_file(source_dir() / "tests/golden/data/exl3-linear.safetensors");
}

TEST(Exl3LinearGolden, AllLayers) {
    const auto path = golden_dir() / "exl3-linear/vectors.safetensors";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
    check_file(path);
}

}  // namespace
}  // namespace exl3::test
