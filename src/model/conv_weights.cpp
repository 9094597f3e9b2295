#include "model/conv_weights.h"

#include <fmt/format.h>

#include "io/convert.h"

namespace exl3 {
namespace {

[[noreturn]] void refuse(const Checkpoint& c, const std::string& name, const std::string& found,
                         const std::string& needed) {
    throw Error(Errc::invalid_file, c.where(name),
                fmt::format("{}, the model needs {}", found, needed));
}

const TensorInfo& require(const Checkpoint& c, const std::string& name) {
    const auto e = c.find(name);
    if (!e.info) throw Error(Errc::invalid_file, {c.folder().string(), name, {}}, "is missing");
    return *e.info;
}

// Channels of one tensor, appended to weight (channels, kernel) and bias (channels).
void append(const Checkpoint& c, const Key& key, int kernel, std::vector<float>& weight,
            std::vector<float>& bias) {
    const std::string name = key / "weight";
    const TensorInfo& info = require(c, name);
    const auto& d = info.dims;
    // The middle dimension, the inputs of a channel, is left out by some writers.
    if (!((d.size() == 3 && d[1] == 1) || d.size() == 2) || d.back() != kernel)
        refuse(c, name, "has shape " + to_string(d), fmt::format("(channels, 1, {})", kernel));
    const std::vector<float> values = read_f32(c, name);
    weight.insert(weight.end(), values.begin(), values.end());
    const std::string bias_name = key / "bias";
    if (!c.has(bias_name)) return;
    if (c.find(bias_name).info->dims != std::vector<int64_t>{d[0]})
        refuse(c, bias_name, "has shape " + to_string(c.find(bias_name).info->dims),
               fmt::format("({})", d[0]));
    const std::vector<float> b = read_f32(c, bias_name);
    bias.insert(bias.end(), b.begin(), b.end());
}

}  // namespace

Tensor upload_f32(Stream& s, const std::vector<float>& values, Shape shape) {
    Tensor t = s.device().make_tensor(DType::f32, shape);
    s.copy(dense(values.data(), DType::f32, shape), t.view);
    s.synchronize();  // the values may go away
    return t;
}

Tensor load_vector(Stream& s, const Checkpoint& c, const std::string& name, int64_t n) {
    const TensorInfo& info = require(c, name);
    if (info.numel() != n)
        refuse(c, name, "has shape " + to_string(info.dims), fmt::format("({})", n));
    return upload_f32(s, read_f32(c, name), {n});
}

ConvWeights::ConvWeights(Stream& s, const Checkpoint& c, const Key& key,
                         const std::vector<Key>& parts, int channels, int kernel) {
    std::vector<float> rows, biases;
    if (parts.empty() || c.has((key / "weight").str())) {
        append(c, key, kernel, rows, biases);
    } else {
        for (const Key& part : parts) append(c, part, kernel, rows, biases);
    }
    const auto want = static_cast<size_t>(channels);
    if (rows.size() != want * static_cast<size_t>(kernel) ||
        (!biases.empty() && biases.size() != want))
        throw Error(
            Errc::invalid_file, {c.folder().string(), key / "weight", {}},
            fmt::format("found {} channels and {} biases, the model needs {}",
                        rows.size() / static_cast<size_t>(kernel), biases.size(), channels));
    std::vector<float> columns(rows.size());
    for (size_t i = 0; i < want; ++i)
        for (size_t j = 0; j < static_cast<size_t>(kernel); ++j)
            columns[j * want + i] = rows[i * static_cast<size_t>(kernel) + j];
    weight = upload_f32(s, columns, {kernel, channels});
    if (!biases.empty()) bias = upload_f32(s, biases, {channels});
}

}  // namespace exl3
