#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "core/device.h"

namespace exl3 {

struct DequantizeOptions {
    std::filesystem::path source;  ///< an EXL3 checkpoint of a known architecture
    std::filesystem::path output;  ///< made; must not exist, or be an empty folder
    DType dtype = DType::f16;      ///< of the decoded matrices: f16, bf16 or f32
    int64_t shard_mb = 4096;       ///< a new file starts where one would grow beyond; 0: one file
    const std::atomic<bool>* cancel = nullptr;  ///< set: Error{cancelled} before the next tensor
    std::function<void(int64_t done, int64_t total)> progress;  ///< in bytes
};

struct DequantizeReport {
    int matrices = 0;    ///< decoded
    uint64_t bytes = 0;  ///< of all tensors written
};

/// Turns an EXL3 checkpoint into a plain Hugging Face checkpoint: every matrix becomes a weight in
/// (out, in) orientation with its true sizes, parts of a tensor that the architecture stores
/// stacked (Phi-3's qkv_proj) are stacked again, everything else is copied as it is. config.json
/// loses its quantization block; where embedding and head were tied, they no longer are, because
/// the decoded head is not the embedding. Memory: a few times the largest matrix in f32.
/// Throws Error: no EXL3 matrices, an unknown architecture, damaged tensors, a value beyond the
/// range of f16, an output that exists, a full disk, cancelled. Then nothing is left behind.
DequantizeReport dequantize(Stream& s, const DequantizeOptions& options);

}  // namespace exl3
