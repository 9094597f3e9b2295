#include "io/shards.h"

#include <fmt/format.h>

#include "io/json.h"

namespace exl3 {
namespace {

using Shard = std::vector<const TensorToMake*>;

std::vector<Shard> pack(const std::vector<TensorToMake>& tensors, int64_t shard_mb) {
    std::vector<Shard> shards(1);
    uint64_t used = 0;
    for (const TensorToMake& t : tensors) {
        const uint64_t need = t.bytes();
        if (shard_mb > 0 && used > 0 && used + need > static_cast<uint64_t>(shard_mb) << 20) {
            shards.emplace_back();
            used = 0;
        }
        shards.back().push_back(&t);
        used += need;
    }
    return shards;
}

void write_shard(const std::filesystem::path& path, const Shard& shard) {
    std::vector<TensorToWrite> header;
    for (const TensorToMake* t : shard)
        header.push_back({.name = t->name, .dtype = t->dtype, .dims = t->dims});
    SafetensorsWriter writer(path, header, {{"format", "pt"}});
    for (const TensorToMake* t : shard) t->write(writer);
    writer.commit();
}

}  // namespace

uint64_t TensorToMake::bytes() const {
    uint64_t n = size_of(dtype);
    for (const int64_t d : dims) n *= static_cast<uint64_t>(d);
    return n;
}

uint64_t write_shards(const std::filesystem::path& folder, const std::vector<TensorToMake>& tensors,
                      int64_t shard_mb) {
    const std::vector<Shard> shards = pack(tensors, shard_mb);
    Json map = Json::object();
    uint64_t total = 0;
    for (size_t i = 0; i < shards.size(); ++i) {
        const std::string file =
            shards.size() == 1
                ? "model.safetensors"
                : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
        write_shard(folder / file, shards[i]);
        for (const TensorToMake* t : shards[i]) {
            map[t->name] = file;
            total += t->bytes();
        }
    }
    if (shards.size() > 1) {
        const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
        write_file(folder / "model.safetensors.index.json", index.dump(4) + "\n");
    }
    return total;
}

}  // namespace exl3
