#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint.h"
#include "trellis/codebook.h"

namespace exl3 {

struct SyntheticOptions {
    std::string_view model;  ///< one of synthetic_models()
    int bits = 4;            ///< of the decoder's matrices, 1 to 8
    int head_bits = 6;       ///< of the output matrix, 1 to 8
    Codebook codebook = kMul1;
};

/// "llama1b", "llama8b", ...: models whose shapes are known here.
std::vector<std::string> synthetic_models();

/// An EXL3 checkpoint in memory with the shapes of a real model and random weights, for measuring
/// speed without files: any bits are valid trellis words, and scales are chosen so that activations
/// stay finite. Matrices share one block of random words, so it takes no more memory than the
/// largest tensor of each kind; loading it gives every matrix memory of its own.
/// Throws Error{invalid_argument} naming the models there are, Error{unsupported} for one whose
/// architecture this build lacks, Error{out_of_memory}.
Checkpoint synthetic_checkpoint(const SyntheticOptions& options);

}  // namespace exl3
