#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "import/gguf_family.h"
#include "io/safetensors.h"

namespace exl3 {

/// A tensor of the checkpoint, and what makes it from one of the GGUF file.
struct ImportedTensor {
    std::string name;
    const GgufTensor* source = nullptr;
    std::vector<int64_t> dims;  ///< slowest first
    int64_t first_row = 0;      ///< in the source, of which it may be one expert
    DType dtype = DType::f32;
    int paired_heads = 0;    ///< rows of this many heads go back to their order; 0: they stay
    bool minus_one = false;  ///< the stored numbers are one too large
    std::string file;        ///< of the source, for errors
    int64_t numel() const;
};

/// Every tensor of the checkpoint: embedding, layers in order, final norm, head.
/// @param config  as rebuild_config gives it
/// Their types are left to the caller. Throws Error for a tensor that has no name there, cannot be
/// decoded, or whose rows are no heads.
std::vector<ImportedTensor> plan_tensors(const GgufModel& gguf, const GgufFamily& family,
                                         const Json& config);

/// The narrowest type that holds a tensor's numbers exactly; f16 for what was quantized.
DType choose_dtype(ThreadPool& pool, const ImportedTensor& tensor);

/// Decodes a tensor piece by piece; `after_piece` hears how much was written and may throw to stop.
void write_tensor(ThreadPool& pool, const ImportedTensor& tensor, SafetensorsWriter& out,
                  const std::function<void(uint64_t bytes)>& after_piece);

}  // namespace exl3
