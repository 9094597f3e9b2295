#pragma once
#include <span>
#include <string_view>

#include "io/gguf.h"
#include "io/json.h"

namespace exl3 {

/// A part of a layer: how GGUF calls it and how the checkpoint does.
struct PartName {
    std::string_view gguf, hf;
};

/// How one general.architecture is written in GGUF, and what it becomes.
struct GgufFamily {
    std::string_view name;              ///< general.architecture
    std::string_view class_name;        ///< architectures[0] of config.json
    std::string_view model_type;        ///< of config.json
    std::span<const PartName> parts{};  ///< names that differ from the Llama layout's
    /// A mixture of experts: the entry for files with an expert_count. "*" in `parts` is the
    /// expert.
    bool experts = false;
    /// The rows of q and k were reordered so that rotary pairs are neighbours.
    bool paired_rows = false;
    /// Norm weights are stored plus one.
    bool norms_plus_one = false;
    /// Adds what only this architecture has to config.json.
    void (*extra)(const GgufModel& gguf, Json& config) = nullptr;
};

/// The family that the file names. Throws Error{unsupported} listing those that are known.
const GgufFamily& family_of(const GgufModel& gguf);

/// "llama.KEY" for a file of the Llama family.
std::string arch_key(const GgufModel& gguf, std::string_view key);

/// config.json: sizes, RoPE with its scaling, special tokens, tying. Throws Error naming the key
/// that is missing, makes no sense, or asks for something that the checkpoint cannot say.
Json rebuild_config(const GgufModel& gguf, const GgufFamily& family);

/// generation_config.json: special tokens and the sampler settings that the file recommends.
Json rebuild_generation_config(const GgufModel& gguf);

/// The checkpoint's name of a tensor; empty for those whose content went into the config
/// (rope_freqs). A "*" stands for the number of each of the experts that the tensor holds. Throws
/// Error{unsupported} for one that the family does not have.
std::string checkpoint_name(const GgufModel& gguf, const GgufFamily& family,
                            const GgufTensor& tensor);

}  // namespace exl3
