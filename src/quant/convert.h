#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "trellis/codebook.h"

namespace exl3 {

struct ConvertOptions {
    std::filesystem::path source;  ///< a Hugging Face checkpoint
    std::filesystem::path output;  ///< made; must not exist yet
    std::filesystem::path work;    ///< where unfinished work is kept; empty: output + ".work"
    double bits = 4;               ///< average over the decoder, 1 to 8
    /// Of the output head, 1 to 8. 0: the budget counts 6, and what the head itself gets is part of
    /// the allocation.
    int head_bits = 0;
    /// Bits by regular expression of a matrix's name, 1 to 8; the last that matches counts. Such
    /// matrices stand outside the budget.
    std::vector<std::pair<std::string, int>> overrides;
    Codebook codebook = kMul1;
    int cal_rows = 250, cal_cols = 2048;
    std::vector<std::filesystem::path> cal_files;  ///< empty: the text that comes with the program
    bool hq = false;     ///< attention one bit above the floor, outside the budget
    bool plain = false;  ///< the published algorithm without this project's improvements
    /// Bits go where they lessen the divergence most, as one backward pass of the source tells;
    /// else attention and the outer layers come first. Models without a backward pass here
    /// (train/decoder.h) are allocated by position.
    bool by_worth = true;
    bool two_sided = false;  ///< rounding also heeds which outputs matter; needs by_worth
    int distill_steps = 48;  ///< of gradient descent on all scales at the end; needs by_worth
    uint64_t seed = 0;
    int64_t shard_mb = 8192;
    bool verify = false;   ///< read the result back and check every tensor
    bool restart = false;  ///< drop unfinished work instead of continuing it

    const std::atomic<bool>* cancel =
        nullptr;  ///< set: stops at the next safe point, Error{cancelled}
    /// What is being done: e.g. ("model.layers.3", 4 of 12 steps).
    std::function<void(const std::string& what, int done, int total)> progress;
};

struct ConvertedTensor {
    std::string name;
    int bits = 0;
    double proxy_err =
        0;  ///< H-weighted squared error over the weight's; without calibration plain
};

struct ConvertReport {
    double bpw_layers = 0;  ///< trellis bits of the decoder's matrices over their padded weights
    double bpw_head = 0;
    uint64_t bytes = 0;      ///< of the written safetensors files
    double seconds = 0;      ///< of this call
    int resumed_layers = 0;  ///< layers found finished in the work folder
    std::vector<ConvertedTensor> tensors;
};

/// Converts a checkpoint to EXL3, layer by layer: measure the inputs of each matrix, quantize,
/// continue with the outputs of the quantized layer. Every finished layer is kept in the work
/// folder, so the same call goes on after any interruption and ends with the same bytes.
/// Throws Error: what the source lacks, an output that exists, a work folder made with other
/// options, a full disk, cancelled.
ConvertReport convert(Stream& s, const ConvertOptions& options);

}  // namespace exl3
