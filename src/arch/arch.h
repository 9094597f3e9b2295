#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint.h"
#include "model/spec.h"

namespace exl3 {

/// What an architecture function reads: the text part of config.json and, for names that depend on
/// who wrote the file, which tensors there are.
struct ArchInput {
    HfConfig config;  ///< the text level: text_config where there is one
    HfConfig whole;   ///< the whole of config.json
    Key prefix;       ///< found by looking for the embedding: "model", "model.language_model", ...
    Key head;         ///< "lm_head", "language_model.lm_head", ...
    std::function<bool(std::string_view)> has;  ///< whether the file has a tensor of that name
    /// Its dimensions; empty where there is none or only its name is known.
    std::function<std::vector<int64_t>(std::string_view)> shape;
};

/// The model a checkpoint holds. Throws Error{unsupported} for an architecture that is not known,
/// with the list of those that are, and Error{invalid_file} for a config that makes no sense.
ModelSpec describe(const Checkpoint& checkpoint);

/// The same from a config alone; `has` tells which tensors exist.
ModelSpec describe(const HfConfig& config, const std::function<bool(std::string_view)>& has);

/// Names accepted in "architectures", sorted.
std::vector<std::string> known_architectures();

}  // namespace exl3
