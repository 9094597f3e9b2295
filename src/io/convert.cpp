#include "io/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "base/half.h"

namespace exl3 {
namespace {

/// E4M3 without infinities: exponent bias 7, 0x7f and 0xff are NaN, the largest value is 448.
/// Source: OCP 8-bit Floating Point Specification (OFP8) 1.0.
constexpr float from_e4m3(uint8_t b) {
    const int exponent = (b >> 3) & 0xf, mantissa = b & 7;
    float v = 0;
    if ((b & 0x7f) == 0x7f)
        v = std::numeric_limits<float>::quiet_NaN();
    else if (exponent == 0)
        v = static_cast<float>(mantissa) * 0x1p-9f;
    else
        v = std::bit_cast<float>(static_cast<uint32_t>(exponent + 120) << 23 |
                                 static_cast<uint32_t>(mantissa) << 20);
    return b & 0x80 ? -v : v;
}

/// A power of two, 2^(b - 127); 0xff is NaN. Source: OCP Microscaling Formats (MX) 1.0.
constexpr float from_e8m0(uint8_t b) {
    if (b == 0xff) return std::numeric_limits<float>::quiet_NaN();
    return b == 0 ? 0x1p-127f : std::bit_cast<float>(static_cast<uint32_t>(b) << 23);
}

/// E5M2 is the upper half of an IEEE half.
constexpr float from_e5m2(uint8_t b) {
    return to_float(f16{static_cast<uint16_t>(b << 8)});
}

template <float (*From)(uint8_t)>
constexpr std::array<float, 256> kTable = [] {
    std::array<float, 256> t{};
    for (int i = 0; i < 256; ++i) t[static_cast<size_t>(i)] = From(static_cast<uint8_t>(i));
    return t;
}();

/// The same values as to_float(f16) without a branch, so that compilers make vector code of it:
/// moved to its place in an f32, a half is 2^-112 times too small, subnormals included.
float half_to_float(uint16_t h) {
    const float magnitude =
        std::bit_cast<float>(static_cast<uint32_t>(h & 0x7fff) << 13) * 0x1p112f;
    const uint32_t special = (h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | special |
                                static_cast<uint32_t>(h & 0x8000) << 16);
}

/// to[i] = f(element i); memcpy because bytes of a file are aligned to nothing.
template <typename T, typename F>
void each(const void* from, int64_t n, float* to, F f) {
    const auto* bytes = static_cast<const char*>(from);
    for (int64_t i = 0; i < n; ++i) {
        T v;
        std::memcpy(&v, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
        to[i] = f(v);
    }
}

bool is_float(DType t) {
    switch (t) {
        case DType::f64:
        case DType::f32:
        case DType::f16:
        case DType::bf16:
        case DType::f8_e4m3:
        case DType::f8_e5m2:
        case DType::f8_e8m0: return true;
        default: return false;
    }
}

std::vector<float> read_plain(const Checkpoint& checkpoint, std::string_view name) {
    const ConstView v = checkpoint.view(name);
    if (!is_float(v.dtype))
        throw Error(Errc::invalid_file, checkpoint.where(name),
                    fmt::format("found {}, needed a float dtype", name_of(v.dtype)));
    std::vector<float> out(static_cast<size_t>(v.shape.numel()));
    convert_to_f32(v.data, v.dtype, v.shape.numel(), out.data());
    return out;
}

/// The tensor that scales `name`, "" if there is none. Throws Error when there are several.
std::string companion(const Checkpoint& checkpoint, std::string_view name) {
    std::vector<std::string> present;
    const auto look = [&](std::string candidate) {
        if (checkpoint.has(candidate)) present.push_back(std::move(candidate));
    };
    look(fmt::format("{}_scale", name));
    look(fmt::format("{}_scale_inv", name));
    constexpr std::string_view kWeight = ".weight";  // DeepSeek-V4 has "scale" beside "weight"
    if (name.ends_with(kWeight))
        look(fmt::format("{}.scale", name.substr(0, name.size() - kWeight.size())));
    if (present.size() > 1)
        throw Error(
            Errc::invalid_file, checkpoint.where(name),
            fmt::format("found both '{}' and '{}', needed one scale", present[0], present[1]));
    return present.empty() ? std::string() : present.front();
}

/// Rows and columns of a block that has one scale. Source: fp8 checkpoints of DeepSeek and Qwen.
std::array<int64_t, 2> block_size(const HfConfig& config) {
    constexpr std::string_view kKey = "quantization_config.weight_block_size";
    const auto size = config.list<int>(kKey);
    if (size.empty()) return {128, 128};
    if (size.size() != 2 || size[0] <= 0 || size[1] <= 0)
        config.fail(kKey,
                    fmt::format("found [{}], needed two positive integers", fmt::join(size, ", ")));
    return {size[0], size[1]};
}

/// How many elements of each dimension of a weight share one scale. A scale tensor may be a single
/// number, or have per dimension 1, as many entries as the weight, or one entry a block; dimensions
/// that it lacks at the end count as 1 (a row scale is (out) or (out, 1), one of stacked experts is
/// (experts)). nullopt: the shapes do not go together.
std::optional<std::vector<int64_t>> blocks_of(const std::vector<int64_t>& weight,
                                              std::vector<int64_t> scale,
                                              std::array<int64_t, 2> block) {
    int64_t numel = 1;
    for (const int64_t d : scale) numel *= d;
    if (numel == 1) scale.clear();
    if (scale.size() > weight.size()) return std::nullopt;
    scale.resize(weight.size(), 1);
    std::vector<int64_t> shared(weight.size());
    for (size_t i = 0; i < weight.size(); ++i) {
        const int64_t w = weight[i], s = scale[i];
        const size_t from_end = weight.size() - 1 - i;
        const int64_t b = from_end < 2 ? block[1 - from_end] : 1;
        if (s == w)
            shared[i] = 1;
        else if (s == 1)
            shared[i] = w;
        else if (s == (w + b - 1) / b)
            shared[i] = b;
        else if (s > 0 && w % s == 0 && from_end < 2)
            shared[i] = w / s;
        else
            return std::nullopt;
    }
    return shared;
}

/// Multiplies `out`, entries [first, first + count) of a dense tensor of shape `dims`, by its
/// scales. Dimension i of the scale tensor has one entry for every shared[i] elements.
void apply_scales(const std::vector<float>& scales, std::vector<int64_t> dims,
                  const std::vector<int64_t>& shared, int64_t first, int64_t count, float* out) {
    const size_t rank = dims.size();
    std::vector<int64_t> stride(rank, 1);  // of the scale tensor
    for (size_t i = rank; i-- > 1;)
        stride[i - 1] = stride[i] * ((dims[i] + shared[i] - 1) / shared[i]);
    const int64_t columns = dims[rank - 1];
    std::vector<int64_t> at(rank, 0);  // index of the row in the leading dimensions
    if (rank > 1) at[0] = first, dims[0] = first + count;
    for (bool more = true; more;) {
        int64_t base = 0;
        for (size_t i = 0; i + 1 < rank; ++i) base += at[i] / shared[i] * stride[i];
        for (int64_t begin = 0; begin < columns; begin += shared[rank - 1]) {
            const float scale = scales[static_cast<size_t>(base + begin / shared[rank - 1])];
            const int64_t end = std::min(columns, begin + shared[rank - 1]);
            for (int64_t c = begin; c < end; ++c) out[c] *= scale;
        }
        out += columns;
        more = false;
        for (size_t i = rank - 1; i-- > 0 && !more;) {
            more = ++at[i] < dims[i];
            if (!more) at[i] = 0;
        }
    }
}

/// Entries [first, first + count) of the first dimension; count < 0: the whole tensor.
void read_entries(const Checkpoint& checkpoint, std::string_view name, int64_t first, int64_t count,
                  float* out) {
    const ConstView v = checkpoint.view(name);
    if (!is_float(v.dtype))
        throw Error(Errc::invalid_file, checkpoint.where(name),
                    fmt::format("found {}, needed a float dtype", name_of(v.dtype)));
    std::vector<int64_t> dims = checkpoint.find(name).info->dims;
    if (dims.empty()) dims = {1};
    if (count < 0) count = dims[0];
    const int64_t entry = dims[0] > 0 ? v.shape.numel() / dims[0] : 0, n = count * entry;
    const auto* bytes = static_cast<const std::byte*>(v.data);
    convert_to_f32(bytes + static_cast<size_t>(first * entry) * size_of(v.dtype), v.dtype, n, out);
    if (n == 0 || (v.dtype != DType::f8_e4m3 && v.dtype != DType::f8_e5m2)) return;
    const std::string scale = companion(checkpoint, name);
    if (scale.empty()) return;

    const auto& scale_dims = checkpoint.find(scale).info->dims;
    const auto shared = blocks_of(dims, scale_dims, block_size(checkpoint.config()));
    if (!shared)
        throw Error(Errc::invalid_file, checkpoint.where(scale),
                    fmt::format("found the shape {}, needed one that scales {} of shape {}: one "
                                "number, or one per row or block",
                                to_string(scale_dims), name, to_string(dims)));
    apply_scales(read_plain(checkpoint, scale), dims, *shared, first, count, out);
}

/// A tensor of bytes (u8, or the fp8 dtype that some writers give them) of a wanted shape.
const uint8_t* bytes_of(const Checkpoint& checkpoint, const std::string& name,
                        const std::vector<int64_t>& shape) {
    const auto e = checkpoint.find(name);
    if (!e.info)
        throw Error(Errc::invalid_file, {checkpoint.folder().string(), name, {}}, "is missing");
    if (size_of(e.info->dtype) != 1 || e.info->dims != shape)
        throw Error(Errc::invalid_file, checkpoint.where(name),
                    fmt::format("found {} {}, needed u8 {}", name_of(e.info->dtype),
                                to_string(e.info->dims), to_string(shape)));
    return static_cast<const uint8_t*>(checkpoint.view(name).data);
}

}  // namespace

void read_f32(const Checkpoint& checkpoint, std::string_view name, float* out) {
    read_entries(checkpoint, name, 0, -1, out);
}

std::vector<float> read_f32(const Checkpoint& checkpoint, std::string_view name) {
    std::vector<float> out(static_cast<size_t>(checkpoint.view(name).shape.numel()));
    read_f32(checkpoint, name, out.data());
    return out;
}

std::vector<float> read_f32_part(const Checkpoint& checkpoint, std::string_view name,
                                 int64_t index) {
    const ConstView v = checkpoint.view(name);
    const auto& dims = checkpoint.find(name).info->dims;
    EXL3_CHECK(dims.size() >= 2 && index >= 0 && index < dims[0]);
    std::vector<float> out(static_cast<size_t>(v.shape.numel() / dims[0]));
    read_entries(checkpoint, name, index, 1, out.data());
    return out;
}

bool is_mxfp4(const Checkpoint& checkpoint, std::string_view name) {
    return !checkpoint.has(name) && checkpoint.has(fmt::format("{}_blocks", name));
}

std::vector<float> read_mxfp4(const Checkpoint& checkpoint, std::string_view name, int64_t index,
                              const std::vector<int64_t>& shape) {
    constexpr float kValues[16] = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                   -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    constexpr int64_t kGroup = 32, kBytes = kGroup / 2;
    const int64_t rows = shape[1], groups = shape[2] / kGroup;
    if (shape[2] % kGroup != 0)
        throw Error(Errc::invalid_file, checkpoint.where(fmt::format("{}_blocks", name)),
                    fmt::format("holds rows of {}, needed a multiple of 32", shape[2]));
    const uint8_t* block =
        bytes_of(checkpoint, fmt::format("{}_blocks", name), {shape[0], rows, groups, kBytes}) +
        index * rows * groups * kBytes;
    const uint8_t* scale =
        bytes_of(checkpoint, fmt::format("{}_scales", name), {shape[0], rows, groups}) +
        index * rows * groups;
    std::vector<float> out;
    out.reserve(static_cast<size_t>(rows * shape[2]));
    for (int64_t g = 0; g < rows * groups; ++g)
        for (int64_t i = 0; i < kBytes; ++i) {
            const uint8_t pair = block[g * kBytes + i];
            out.push_back(kValues[pair & 15] * from_e8m0(scale[g]));
            out.push_back(kValues[pair >> 4] * from_e8m0(scale[g]));
        }
    return out;
}

void convert_to_f32(const void* from, DType dtype, int64_t n, float* to) {
    switch (dtype) {
        case DType::f64:
            return each<double>(from, n, to, [](double v) { return static_cast<float>(v); });
        case DType::f32:
            if (n > 0) std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
            return;
        case DType::f16: return each<uint16_t>(from, n, to, half_to_float);
        case DType::bf16:
            return each<uint16_t>(from, n, to, [](uint16_t b) { return to_float(bf16{b}); });
        case DType::f8_e4m3:
            return each<uint8_t>(from, n, to, [](uint8_t b) { return kTable<from_e4m3>[b]; });
        case DType::f8_e5m2:
            return each<uint8_t>(from, n, to, [](uint8_t b) { return kTable<from_e5m2>[b]; });
        case DType::f8_e8m0:
            return each<uint8_t>(from, n, to, [](uint8_t b) { return kTable<from_e8m0>[b]; });
        default: EXL3_CHECK(false, "not a float dtype");
    }
}

}  // namespace exl3
