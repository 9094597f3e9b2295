#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "io/config.h"
#include "io/safetensors.h"

namespace exl3 {

/// The "weight_map" of a model.safetensors.index.json: tensor name to file name. Refuses names that
/// are not plain names of .safetensors files in the same folder. For the fuzz target.
Result<std::map<std::string, std::string>> parse_checkpoint_index(std::string_view text,
                                                                  const std::string& file);

/// A model folder: config.json, generation_config.json if there is one, and every *.safetensors.
/// Files are mapped, not read. An index file is used to find missing shards; tensors are taken from
/// the headers, in file-name order, later files overriding earlier ones when no index names an
/// owner (this is how separately made draft-head files are added).
class Checkpoint {
public:
    /// Throws Error naming file, tensor and offset: no such folder, no config.json, no weights, a
    /// shard that the index names and the folder lacks, a tensor that the index promises and no
    /// file holds, or whatever SafetensorsFile::open refuses.
    static Checkpoint open(const std::filesystem::path& folder);

    /// A checkpoint of which nothing is on disk. @param name  stands for the folder in errors
    static Checkpoint in_memory(std::string name, HfConfig config, SafetensorsFile weights);

    const std::filesystem::path& folder() const { return folder_; }
    const HfConfig& config() const { return config_; }
    const std::optional<HfConfig>& generation_config() const { return generation_; }

    struct Entry {
        const SafetensorsFile* file = nullptr;
        const TensorInfo* info = nullptr;
    };
    bool has(std::string_view name) const { return find(name).info != nullptr; }
    Entry find(std::string_view name) const;  ///< {nullptr, nullptr}: no such tensor
    /// Every tensor name, sorted, with its entry.
    const std::map<std::string, Entry, std::less<>>& tensors() const { return tensors_; }
    /// The mapped bytes. Throws Error{invalid_file} when missing.
    ConstView view(std::string_view name) const;
    /// Where `name` stands, for errors about its content.
    Where where(std::string_view name) const;
    uint64_t total_bytes() const;  ///< of all tensors

private:
    Checkpoint(std::filesystem::path folder, HfConfig config);
    void open_weights();
    std::filesystem::path folder_;
    HfConfig config_;
    std::optional<HfConfig> generation_;
    std::vector<std::unique_ptr<SafetensorsFile>> files_;
    std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace exl3
