#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "core/tensor.h"

namespace exl3 {

struct ImportOptions {
    std::filesystem::path source;  ///< a .gguf file; of a split model any part
    std::filesystem::path output;  ///< made; must not exist, or be an empty folder
    /// f16, bf16 or f32 for every tensor. Empty: the narrowest type that holds a tensor's numbers
    /// exactly, and f16 for what was quantized (its step is 8 times finer than bf16's).
    std::optional<DType> dtype;
    int64_t shard_mb = 4096;  ///< a new file starts where one would grow beyond; 0: one file
    const std::atomic<bool>* cancel = nullptr;  ///< set: Error{cancelled} before the next rows
    std::function<void(int64_t done, int64_t total)> progress;  ///< in bytes written
};

struct ImportReport {
    std::string architecture;  ///< as config.json names it
    int tensors = 0;           ///< written
    uint64_t bytes = 0;        ///< of all tensors written
};

/// Turns a GGUF model into a plain Hugging Face checkpoint: weights decoded and put back into the
/// layout of the original (rotary pairs of q and k, norms without the added one), config.json,
/// generation_config.json, tokenizer.json and tokenizer_config.json. The result is compared with
/// what the architecture needs before anything is written, and appears whole or not at all.
/// Memory: a few MB a thread beside the mapped file.
/// Throws Error naming file and key or tensor: a malformed file, an unknown architecture, tokenizer
/// or tensor type, tensors that are missing or have another shape, a value that is not finite or
/// beyond the range of `dtype`, an output that exists, a full disk, cancelled.
ImportReport import_gguf(ThreadPool& pool, const ImportOptions& options);

}  // namespace exl3
