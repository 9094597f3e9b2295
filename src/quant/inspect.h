#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "io/checkpoint.h"
#include "model/spec.h"

namespace exl3 {

/// Memory that a model needs for one sequence of a length, bytes.
struct MemoryNeed {
    int64_t context = 0;   ///< tokens
    uint64_t weights = 0;  ///< all tensors of the checkpoint
    uint64_t cache = 0;    ///< keys and values, f16, whole pages; recurrent states
    uint64_t scratch = 0;  ///< activations of a 512-token pass, roughly
    uint64_t total() const { return weights + cache + scratch; }
};

/// What a checkpoint is.
struct CheckpointSummary {
    std::string architecture;
    std::optional<ModelSpec> spec;       ///< none: unknown architecture, or a config it refuses
    std::string why_not;                 ///< the reason for that
    std::vector<std::string> codebooks;  ///< of the EXL3 matrices, sorted
    int exl3_matrices = 0;
    int64_t weights = 0;  ///< numbers of the model; EXL3 padding is left out where `spec` tells it
    double bpw_file = 0;  ///< all tensor bits over `weights`
    uint64_t bytes = 0;   ///< of all tensors

    // The rest needs `spec` and is 0 or empty without.
    double bpw_decoder = 0;  ///< stored bits over stored weights of the decoder's matrices, scales
                             ///< left out
    double bpw_head = 0;     ///< of the output matrix; of the embedding where that is the head
    uint64_t bytes_per_token = 0;    ///< of the cache, f16
    std::vector<MemoryNeed> memory;  ///< for a few lengths up to what the model was made for
};
CheckpointSummary summarize(const Checkpoint& checkpoint);

/// Everything that is wrong with a checkpoint, one line each: tensors that the architecture needs
/// and the file lacks or shapes differently, malformed EXL3 matrices, NaN and infinite values, an
/// unknown architecture. Reads every byte and holds one layer at a time on the device of `s`.
std::vector<std::string> check_checkpoint(Stream& s, const Checkpoint& checkpoint);

}  // namespace exl3
