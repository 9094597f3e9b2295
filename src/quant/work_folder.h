#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "io/safetensors.h"
#include "model/linear.h"

namespace exl3 {

/// A quantized matrix and what the report says about it.
struct QuantizedTensor {
    Key key;
    Exl3Matrix matrix;
    double proxy_err = 0;
};

/// The folder in which a conversion keeps what it has finished, so that it can be killed at any
/// moment. Every file is written under a temporary name, synced and renamed.
class WorkFolder {
public:
    /// Opens or makes the folder. `job` identifies source and options: a folder made for another
    /// job is refused with Error{invalid_argument} naming the first difference, unless `restart`,
    /// which empties it.
    WorkFolder(std::filesystem::path folder, const Json& job, bool restart);

    bool has(const std::string& part) const;  ///< part: "block-0003", "head"
    void save(const std::string& part, const std::vector<QuantizedTensor>& tensors) const;
    std::vector<QuantizedTensor> load(const std::string& part) const;

    /// Scales that replace those of all parts, once everything is quantized.
    bool has_scales() const;
    void save_scales(const std::vector<QuantizedTensor>& tensors) const;
    /// load(), with the replaced scales where there are some.
    std::vector<QuantizedTensor> load_finished(const std::string& part) const;

    /// Named tensors of any kind.
    void save_tensors(const std::string& part, const std::vector<TensorToWrite>& tensors) const;
    SafetensorsFile open(const std::string& part) const;

    /// The hidden states that enter block `next`, (tokens, hidden) f32; replaces the last ones.
    void save_state(int next, const std::vector<float>& state) const;
    /// The newest saved state that enters a block no later than `limit`; `numel` floats.
    std::optional<std::pair<int, std::vector<float>>> load_state(int limit, size_t numel) const;

    const std::filesystem::path& folder() const { return folder_; }

private:
    std::filesystem::path file(const std::string& part) const;
    std::filesystem::path folder_;
};

}  // namespace exl3
