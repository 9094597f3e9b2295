#include "quant/work_folder.h"

#include <fmt/format.h>

#include <cstring>

#include "io/mapped_file.h"
#include "io/safetensors.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kState = "state-";
constexpr const char* kScales = "scales";

void require_same_job(const fs::path& file, const Json& job) {
    const Json old = parse_json(read_file(file).value(), file.string()).value();
    for (const auto& [key, value] : job.items()) {
        const auto it = old.find(key);
        if (it != old.end() && *it == value) continue;
        throw Error(
            Errc::invalid_argument, {file.string(), {}, {}},
            fmt::format("unfinished work with {} = {}, this call has {}; finish it with the same "
                        "options or drop it with --restart",
                        key, it == old.end() ? "nothing" : it->dump(), value.dump()));
    }
}

}  // namespace

WorkFolder::WorkFolder(fs::path folder, const Json& job, bool restart)
    : folder_(std::move(folder)) {
    std::error_code error;
    if (restart) fs::remove_all(folder_, error);
    fs::create_directories(folder_, error);
    if (error || !fs::is_directory(folder_))
        throw Error(Errc::io, {folder_.string(), {}, {}},
                    "cannot make the work folder: " + error.message());
    const fs::path file = folder_ / "job.json";
    if (fs::exists(file))
        require_same_job(file, job);
    else
        write_file(file, job.dump(4) + "\n");
}

fs::path WorkFolder::file(const std::string& part) const {
    return folder_ / (part + ".safetensors");
}

bool WorkFolder::has(const std::string& part) const {
    return fs::exists(file(part));
}

void WorkFolder::save(const std::string& part, const std::vector<QuantizedTensor>& tensors) const {
    std::vector<TensorToWrite> out;
    for (const QuantizedTensor& t : tensors) {
        const Exl3Matrix& m = t.matrix;
        const auto add = [&](std::string_view suffix, DType dtype, std::vector<int64_t> dims,
                             const void* data) {
            out.push_back({(t.key / suffix).str(), dtype, std::move(dims), data});
        };
        add("trellis", DType::i16, {m.k / kTile, m.n / kTile, tile_words(m.bits)},
            m.trellis.data());
        add("suh", DType::f16, {m.k}, m.suh.data());
        add("svh", DType::f16, {m.n}, m.svh.data());
        if (m.codebook.kind != CodebookKind::three_inst)
            add(name_of(m.codebook.kind), DType::i32, {}, &m.codebook.multiplier);
        if (!m.bias.empty()) add("bias", DType::f32, {m.n}, m.bias.data());
        add("proxy_err", DType::f64, {}, &t.proxy_err);
    }
    write_safetensors(file(part), out);
}

std::vector<QuantizedTensor> WorkFolder::load(const std::string& part) const {
    const SafetensorsFile f = SafetensorsFile::open(file(part)).value();
    std::vector<QuantizedTensor> out;
    const auto copy = [&](const std::string& name, auto& to) {
        const TensorInfo* info = f.find(name);
        if (!info) return false;
        using T = typename std::decay_t<decltype(to)>::value_type;
        to.resize(info->bytes / sizeof(T));
        std::memcpy(to.data(), f.view(*info).data, info->bytes);
        return true;
    };
    for (const TensorInfo& info : f.tensors()) {
        constexpr std::string_view kSuffix = ".trellis";
        if (!info.name.ends_with(kSuffix)) continue;
        QuantizedTensor t{.key = info.name.substr(0, info.name.size() - kSuffix.size())};
        Exl3Matrix& m = t.matrix;
        m.k = info.dims[0] * kTile;
        m.n = info.dims[1] * kTile;
        m.bits = static_cast<int>(info.dims[2] / 16);
        m.codebook = f.find((t.key / "mul1").str())  ? kMul1
                     : f.find((t.key / "mcg").str()) ? kMcg
                                                     : kThreeInst;
        copy(info.name, m.trellis);
        if (!copy((t.key / "suh").str(), m.suh) || !copy((t.key / "svh").str(), m.svh))
            throw Error(Errc::invalid_file, {f.path(), info.name, {}}, "stands without its scales");
        copy((t.key / "bias").str(), m.bias);
        if (const TensorInfo* e = f.find((t.key / "proxy_err").str()))
            std::memcpy(&t.proxy_err, f.view(*e).data, sizeof t.proxy_err);
        out.push_back(std::move(t));
    }
    return out;
}

bool WorkFolder::has_scales() const {
    return has(kScales);
}

void WorkFolder::save_scales(const std::vector<QuantizedTensor>& tensors) const {
    std::vector<TensorToWrite> out;
    for (const QuantizedTensor& t : tensors) {
        const Exl3Matrix& m = t.matrix;
        out.push_back({(t.key / "suh").str(), DType::f16, {m.k}, m.suh.data()});
        out.push_back({(t.key / "svh").str(), DType::f16, {m.n}, m.svh.data()});
    }
    save_tensors(kScales, out);
}

std::vector<QuantizedTensor> WorkFolder::load_finished(const std::string& part) const {
    std::vector<QuantizedTensor> tensors = load(part);
    if (!has_scales()) return tensors;
    const SafetensorsFile f = open(kScales);
    const auto copy = [&](const std::string& name, std::vector<f16>& to) {
        const TensorInfo* info = f.find(name);
        if (!info || info->bytes != to.size() * sizeof(f16))
            throw Error(Errc::invalid_file, {f.path(), name, {}},
                        "is missing or of another size; drop the work with --restart");
        std::memcpy(to.data(), f.view(*info).data, info->bytes);
    };
    for (QuantizedTensor& t : tensors) {
        copy((t.key / "suh").str(), t.matrix.suh);
        copy((t.key / "svh").str(), t.matrix.svh);
    }
    return tensors;
}

void WorkFolder::save_tensors(const std::string& part,
                              const std::vector<TensorToWrite>& tensors) const {
    write_safetensors(file(part), tensors);
}

SafetensorsFile WorkFolder::open(const std::string& part) const {
    return SafetensorsFile::open(file(part)).value();
}

void WorkFolder::save_state(int next, const std::vector<float>& state) const {
    const std::string part = fmt::format("{}{:04}", kState, next);
    const auto numel = static_cast<int64_t>(state.size());
    write_safetensors(file(part), {{"state", DType::f32, {numel}, state.data()}});
    for (const auto& entry : fs::directory_iterator(folder_)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(kState) && name != part + ".safetensors") fs::remove(entry.path());
    }
}

std::optional<std::pair<int, std::vector<float>>> WorkFolder::load_state(int limit,
                                                                         size_t numel) const {
    for (int next = limit; next > 0; --next) {
        const std::string part = fmt::format("{}{:04}", kState, next);
        if (!has(part)) continue;
        const auto f = SafetensorsFile::open(file(part)).value();
        const TensorInfo* info = f.find("state");
        if (!info || info->bytes != numel * sizeof(float)) continue;
        std::vector<float> state(numel);
        std::memcpy(state.data(), f.view(*info).data, info->bytes);
        return std::pair(next, std::move(state));
    }
    return std::nullopt;
}

}  // namespace exl3
