#include "io/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "io/mapped_file.h"

namespace exl3 {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kExtension = ".safetensors";

/// The *.safetensors of a folder in file-name order, hidden ones (left by copying tools) left out.
std::vector<fs::path> weight_files(const fs::path& folder) {
    std::error_code problem;
    std::vector<fs::path> files;
    for (fs::directory_iterator it(folder, problem), end; !problem && it != end;
         it.increment(problem)) {
        const fs::path& path = it->path();
        if (path.extension() == kExtension && !path.filename().string().starts_with('.'))
            files.push_back(path);
    }
    if (problem)
        throw Error(Errc::io, {folder.string()},
                    fmt::format("cannot list the folder: {}", problem.message()));
    std::sort(files.begin(), files.end());
    return files;
}

/// "model-00002-of-00005" is part 2 of 5 of "model". A missing download shows without an index.
struct ShardName {
    std::string stem;
    uint64_t count = 0;
};
std::optional<ShardName> shard_name(const fs::path& file) {
    const std::string name = file.stem().string();
    const auto number_at = [&](size_t begin, size_t end) -> std::optional<uint64_t> {
        uint64_t n = 0;
        const char* last = name.data() + end;
        const auto [stop, problem] = std::from_chars(name.data() + begin, last, n);
        return problem == std::errc() && stop == last ? std::optional(n) : std::nullopt;
    };
    const size_t of = name.rfind("-of-");
    if (of == std::string::npos || of == 0) return std::nullopt;
    const size_t dash = name.rfind('-', of - 1);
    if (dash == std::string::npos) return std::nullopt;
    const auto part = number_at(dash + 1, of), count = number_at(of + 4, name.size());
    if (!part || !count) return std::nullopt;
    return ShardName{fmt::format("{}-*{}", name.substr(0, dash), name.substr(of)), *count};
}

void check_shards_are_complete(const fs::path& folder, const std::vector<fs::path>& files) {
    std::map<std::string, std::pair<uint64_t, uint64_t>> groups;  // found, needed
    for (const fs::path& file : files)
        if (const auto shard = shard_name(file)) {
            auto& [found, needed] = groups[shard->stem];
            ++found;
            needed = shard->count;
        }
    for (const auto& [stem, counts] : groups)
        if (counts.first < counts.second)
            throw Error(Errc::invalid_file, {folder.string()},
                        fmt::format("found {} files {}{}, needed {}", counts.first, stem,
                                    kExtension, counts.second));
}

bool is_plain_weight_file(std::string_view name) {
    return name.size() > kExtension.size() && name.ends_with(kExtension) && name[0] != '.' &&
           name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

Result<std::map<std::string, std::string>> parse_checkpoint_index(std::string_view text,
                                                                  const std::string& file) {
    auto json = parse_json(text, file);
    if (!json) return json.error();
    const auto refuse = [&](const std::string& tensor, std::string_view what) {
        return Error(Errc::invalid_file, {file, tensor, std::nullopt}, what);
    };
    if (!json->is_object())
        return refuse({}, fmt::format("found {}, needed an object", json->type_name()));
    const auto map = json->find("weight_map");
    if (map == json->end()) return refuse({}, "found no key 'weight_map', needed one");
    if (!map->is_object())
        return refuse({}, fmt::format("key 'weight_map': found {}, needed an object of strings",
                                      map->type_name()));
    std::map<std::string, std::string> owners;
    for (const auto& [tensor, owner] : map->items()) {
        if (!owner.is_string())
            return refuse(tensor, fmt::format("key 'weight_map': found {}, needed a file name",
                                              owner.type_name()));
        const auto& name = owner.get_ref<const std::string&>();
        if (!is_plain_weight_file(name))
            return refuse(tensor, fmt::format("key 'weight_map': found '{}', needed the name of a "
                                              "{} file in the same folder",
                                              name.substr(0, 200), kExtension));
        owners.emplace(tensor, name);
    }
    return owners;
}

Checkpoint::Checkpoint(fs::path folder, HfConfig config)
    : folder_(std::move(folder)), config_(std::move(config)) {}

Checkpoint Checkpoint::open(const fs::path& folder) {
    std::error_code problem;
    const auto status = fs::status(folder, problem);
    if (!fs::is_directory(status))
        throw Error(Errc::io, {folder.string()},
                    fs::exists(status)
                        ? "found a file, needed the folder of a checkpoint"
                        : fmt::format("cannot open the folder: {}", problem.message()));

    Checkpoint c(folder, HfConfig::load(folder / "config.json").value());
    if (const auto path = folder / "generation_config.json"; fs::exists(path, problem))
        c.generation_ = HfConfig::load(path).value();
    c.open_weights();
    return c;
}

Checkpoint Checkpoint::in_memory(std::string name, HfConfig config, SafetensorsFile weights) {
    Checkpoint c(std::move(name), std::move(config));
    c.files_.push_back(std::make_unique<SafetensorsFile>(std::move(weights)));
    for (const TensorInfo& info : c.files_.back()->tensors())
        c.tensors_[info.name] = {c.files_.back().get(), &info};
    return c;
}

void Checkpoint::open_weights() {
    const auto paths = weight_files(folder_);
    if (paths.empty())
        throw Error(Errc::invalid_file, {folder_.string()},
                    fmt::format("found no *{} file, needed the weights", kExtension));

    std::map<std::string, std::string> owners;
    const fs::path index = folder_ / kIndexName;
    std::error_code problem;
    const bool has_index = fs::exists(index, problem);
    if (has_index) {
        owners = parse_checkpoint_index(read_file(index).value(), index.string()).value();
        std::set<std::string> present;
        for (const auto& path : paths) present.insert(path.filename().string());
        for (const auto& [tensor, owner] : owners)
            if (!present.contains(owner))
                throw Error(Errc::invalid_file, {index.string(), tensor, std::nullopt},
                            fmt::format("needs the file '{}', which the folder lacks", owner));
    } else {
        check_shards_are_complete(folder_, paths);
    }

    std::map<std::string, const SafetensorsFile*> by_file_name;
    for (const auto& path : paths) {
        files_.push_back(std::make_unique<SafetensorsFile>(SafetensorsFile::open(path).value()));
        const SafetensorsFile& file = *files_.back();
        by_file_name[path.filename().string()] = &file;
        for (const TensorInfo& info : file.tensors()) tensors_[info.name] = {&file, &info};
    }
    for (const auto& [tensor, owner] : owners) {
        const SafetensorsFile* file = by_file_name.at(owner);
        if (const TensorInfo* info = file->find(tensor))
            tensors_[tensor] = {file, info};
        else if (!tensors_.contains(tensor))
            throw Error(Errc::invalid_file, {file->path(), tensor, std::nullopt},
                        fmt::format("found no such tensor, needed it: {} names it", kIndexName));
    }
}

Checkpoint::Entry Checkpoint::find(std::string_view name) const {
    const auto it = tensors_.find(name);
    return it == tensors_.end() ? Entry{} : it->second;
}

ConstView Checkpoint::view(std::string_view name) const {
    const Entry e = find(name);
    if (!e.info) throw Error(Errc::invalid_file, where(name), "found no such tensor, needed it");
    return e.file->view(*e.info);
}

Where Checkpoint::where(std::string_view name) const {
    const Entry e = find(name);
    if (!e.info) return {folder_.string(), std::string(name), std::nullopt};
    return {e.file->path(), std::string(name), e.info->offset};
}

uint64_t Checkpoint::total_bytes() const {
    uint64_t sum = 0;
    for (const auto& [name, entry] : tensors_) sum += entry.info->bytes;
    return sum;
}

}  // namespace exl3
