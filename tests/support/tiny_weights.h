#pragma once
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/hash.h"
#include "io/json.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"

namespace exl3::test {

/// Weights of a golden tiny model as bf16: a function of the tensor's name and the element's index,
/// base + amp * u with u uniform in [-1, 1). A scalar is base.
inline std::vector<uint16_t> tiny_weights(const std::string& name, const std::vector<int64_t>& dims,
                                          double base, double amp, const std::string& salt = "") {
    int64_t numel = 1;
    for (const int64_t d : dims) numel *= d;
    std::vector<uint16_t> out;
    const uint64_t seed = fnv1a64(salt + name);
    for (int64_t i = 0; i < numel; ++i) {
        uint64_t z = seed + (static_cast<uint64_t>(i) + 1) * 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        z ^= z >> 31;
        const double u = static_cast<double>(z >> 40) / double(1 << 24);
        const auto value = static_cast<float>(dims.empty() ? base : base + amp * (2 * u - 1));
        out.push_back(to_bf16(value).bits);
    }
    return out;
}

/// Writes config.json and model.safetensors of a model of tests/golden/data/tiny.
/// @param golden  its file: "config", "salt", and "tensors" as rows of [pattern, ranges, shape,
///                base, amp] where the n-th '#' of a pattern stands for each number of ranges[n]
inline void write_tiny_model(const Json& golden, const std::filesystem::path& folder) {
    std::vector<TensorToWrite> tensors;
    std::vector<std::vector<uint16_t>> data;
    for (const Json& row : golden.at("tensors")) {
        const auto dims = row[2].get<std::vector<int64_t>>();
        const std::function<void(std::string, size_t)> expand = [&](std::string name, size_t n) {
            const size_t at = name.find('#');
            if (at == std::string::npos) {
                data.push_back(tiny_weights(name, dims, row[3].get<double>(), row[4].get<double>(),
                                            golden.at("salt").get<std::string>()));
                tensors.push_back({.name = name, .dtype = DType::bf16, .dims = dims});
                return;
            }
            for (const Json& i : row[1][n]) {
                std::string one = name;
                one.replace(at, 1, std::to_string(i.get<int>()));
                expand(one, n + 1);
            }
        };
        expand(row[0].get<std::string>(), 0);
    }
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].data = data[i].data();
    write_safetensors(folder / "model.safetensors", tensors);
    write_file(folder / "config.json", golden.at("config").dump());
}

}  // namespace exl3::test
