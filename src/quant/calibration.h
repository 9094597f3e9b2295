#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "text/tokenizer.h"

namespace exl3 {

struct CalibrationOptions {
    int rows = 0, cols = 0;                    ///< sequences, and tokens in each
    std::vector<std::filesystem::path> files;  ///< empty: the text that comes with the program
    uint64_t seed = 0;
};

/// Rows of token ids to run a model on while its matrices are measured: documents of each file
/// (separated by lines "<|endoftext|>") in proportion to the file's size, taken evenly from all of
/// it, and a few rows of random ids so that no embedding stays unseen.
/// Throws Error{io} naming a file that cannot be read, Error{invalid_argument} if the text holds
/// less than one row.
std::vector<std::vector<int32_t>> calibration_rows(const Tokenizer& tokenizer,
                                                   const CalibrationOptions& options);

/// Rows of uniformly random ids below `vocab`: all there is for a model without a tokenizer.
std::vector<std::vector<int32_t>> random_rows(int vocab, int rows, int cols, uint64_t seed);

/// The folder of the text that comes with the program: $EXL3_CALIBRATION, beside an installed
/// program, or in the source tree it was built in. Throws Error{io} if it is nowhere.
std::filesystem::path calibration_folder();

}  // namespace exl3
