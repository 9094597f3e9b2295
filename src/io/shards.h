#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace exl3 {

/// A tensor of a checkpoint whose bytes are made when its turn comes.
struct TensorToMake {
    std::string name;
    DType dtype = DType::f32;
    std::vector<int64_t> dims;
    std::function<void(SafetensorsWriter&)> write;  ///< all of its bytes, in any portions
    uint64_t bytes() const;
};

/// Writes model.safetensors, or where that would grow beyond `shard_mb` MiB (0: never) numbered
/// files and their index. Tensors keep their order. Returns the bytes of all tensors.
/// Throws Error{io}, and whatever a tensor's `write` throws.
uint64_t write_shards(const std::filesystem::path& folder, const std::vector<TensorToMake>& tensors,
                      int64_t shard_mb);

}  // namespace exl3
