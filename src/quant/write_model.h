#pragma once
#include <filesystem>
#include <vector>

#include "io/checkpoint.h"
#include "model/spec.h"
#include "quant/work_folder.h"

namespace exl3 {

/// What the config blocks of a converted model say.
struct ModelMeta {
    double bits = 0;  ///< achieved average of the decoder
    int head_bits = 0;
    Codebook codebook{};
    int cal_rows = 0, cal_cols = 0;
};

/// Writes a converted model: shards in forward order (embedding, blocks, norm, head, the rest),
/// index, config.json with its quantization block, quantization_config.json, and the small files of
/// the source. The folder is made under a temporary name and renamed at the end.
/// @param parts  names in `work`, in forward order: one per block, then the head
/// Returns the bytes of the safetensors files. Throws Error{io}.
uint64_t write_model(const Checkpoint& source, const ModelSpec& spec, const WorkFolder& work,
                     const std::vector<std::string>& parts, const ModelMeta& meta, int64_t shard_mb,
                     const std::filesystem::path& output);

/// Copies every regular file of the source folder that is not a weight file, config.json, an index
/// or a quantization_config.json: tokenizer, generation_config, licence.
void copy_side_files(const std::filesystem::path& source, const std::filesystem::path& output);

}  // namespace exl3
