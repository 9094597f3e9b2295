// Layers quantized by ExLlamaV3 1.4.1: decoding is bit-exact with its inner matrix, and the layer
// agrees with x W in double for its reconstructed weight.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/devices.h"
#include "trellis/tile.h"

namespace exl3::test {
namespace {

struct FileTensor {
    std::string bytes;
    Shape shape;
    ConstView view(DType dtype) const { return dense(bytes.data(), dtype, shape); }
};
using Tensors = std::map<std::string, FileTensor>;

Tensors read_safetensors(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    uint64_t header_bytes = 0;
    file.read(reinterpret_cast<char*>(&header_bytes), 8);
    std::string text(header_bytes, '\0');
    file.read(text.data(), static_cast<std::streamsize>(header_bytes));
    Tensors tensors;
    const nlohmann::json header = nlohmann::json::parse(text);
    for (const auto& [name, entry] : header.items()) {
        if (name == "__metadata__") continue;
        const uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
        FileTensor t;
        t.bytes.resize(end - begin);
        file.seekg(static_cast<std::streamoff>(8 + header_bytes + begin));
        file.read(t.bytes.data(), static_cast<std::streamsize>(t.bytes.size()));
        for (const int64_t d : entry["shape"]) t.shape.dim[t.shape.rank++] = d;
        tensors.emplace(name, std::move(t));
    }
    return tensors;
}

/// One quantized layer, e.g. "mul1.k4", with everything the converter said about it.
struct Layer {
    std::string name;
    Codebook codebook;
    int bits = 0;
    ConstView trellis, suh, svh, inner, weight, x;
};

std::vector<Layer> layers_of(const Tensors& tensors) {
    std::vector<Layer> layers;
    for (const auto& [key, tensor] : tensors) {
        if (!key.ends_with(".trellis")) continue;
        const std::string name = key.substr(0, key.rfind('.'));
        const auto part = [&](const char* suffix, DType dtype) {
            return tensors.at(name + "." + suffix).view(dtype);
        };
        layers.push_back({.name = name,
                          .codebook = codebook_named(name.substr(0, name.find('.'))).value(),
                          .bits = static_cast<int>(tensor.shape[2] / kTile),
                          .trellis = tensor.view(DType::i16),
                          .suh = part("suh", DType::f16),
                          .svh = part("svh", DType::f16),
                          .inner = part("inner_fp16", DType::f16),
                          .weight = part("weight_fp32", DType::f16),
                          .x = part("x", DType::f16)});
    }
    return layers;
}

void expect_same_bits(Stream& s, Arena& arena, const Layer& layer, ConstView packed) {
    const View y = arena.zeros(layer.inner.shape, DType::f16);
    ops::exl3_decode(s, {.packed = packed, .y = y, .codebook = layer.codebook, .bits = layer.bits});
    s.synchronize();
    std::vector<uint16_t> got(static_cast<size_t>(y.shape.numel()));
    s.copy(y, dense(got.data(), DType::f16, y.shape));
    for (size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], layer.inner.as<uint16_t>()[i]) << "element " << i;
}

void expect_same_product(Stream& s, Arena& arena, const Layer& layer, ConstView packed) {
    const int64_t rows = layer.x.shape[0], k = layer.weight.shape[0], n = layer.weight.shape[1];
    std::vector<float> x(static_cast<size_t>(rows * k));
    for (size_t i = 0; i < x.size(); ++i) x[i] = to_float(layer.x.as<f16>()[i]);
    const View y = arena.zeros({rows, n});
    ops::exl3_linear(s, {.x = arena.raw(x.data(), DType::f32, {rows, k}),
                         .packed = packed,
                         .suh = arena.raw(layer.suh.data, DType::f16, {k}),
                         .svh = arena.raw(layer.svh.data, DType::f16, {n}),
                         .y = y,
                         .codebook = layer.codebook,
                         .bits = layer.bits});
    s.synchronize();
    std::vector<float> got(static_cast<size_t>(rows * n));
    s.copy(y, dense(got.data(), DType::f32, y.shape));

    double error = 0, norm = 0;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < n; ++j) {
            double want = 0;
            for (int64_t i = 0; i < k; ++i)
                want += static_cast<double>(x[static_cast<size_t>(r * k + i)]) *
                        to_float(layer.weight.as<f16>()[i * n + j]);
            const double diff = got[static_cast<size_t>(r * n + j)] - want;
            error += diff * diff;
            norm += want * want;
        }
    // The golden weight is itself rounded to f16: 3e-4. The pair codebooks may use bf16 weights.
    const double limit = layer.codebook.kind == CodebookKind::mul1 ? 6e-4 : 2e-3;
    EXPECT_LT(std::sqrt(error / norm), s.device().name() == "ref" ? 4e-4 : limit);
}

void check_file(const std::string& path) {
    const Tensors tensors = read_safetensors(path);
    const std::vector<Layer> layers = layers_of(tensors);
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
    check_file(EXL3_SOURCE_DIR "/tests/golden/data/exl3-linear.safetensors");
}

TEST(Exl3LinearGolden, AllLayers) {
    const std::string path = EXL3_GOLDEN_DIR "/exl3-linear/vectors.safetensors";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
    check_file(path);
}

}  // namespace
}  // namespace exl3::test
