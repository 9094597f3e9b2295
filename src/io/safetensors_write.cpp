#include <fmt/format.h>

#include <limits>
#include <set>

#include "io/dtype_names.h"
#include "io/json.h"
#include "io/output_file.h"
#include "io/safetensors.h"

namespace exl3 {
namespace {

constexpr size_t kAlign = 64;  // a cache line, and what the kernels' widest loads like
constexpr size_t kHeaderLimit = size_t{100} << 20;

uint64_t checked_bytes(const TensorToWrite& t, const Where& where) {
    uint64_t elements = 1;
    for (const int64_t d : t.dims) {
        const auto n = static_cast<uint64_t>(d);
        if (d < 0 || (n > 0 && elements > (uint64_t{1} << 58) / n))
            throw Error(Errc::invalid_argument, where,
                        fmt::format("found the shape {}, needed one that a file can hold",
                                    to_string(t.dims)));
        elements *= n;
    }
    return elements * size_of(t.dtype);
}

/// A JSON string literal. Throws Error{invalid_argument} when `text` is not UTF-8.
std::string quoted(const std::string& text, const Where& where) {
    try {
        return Json(text).dump();
    } catch (const Json::exception&) {
        throw Error(Errc::invalid_argument, where, "found a name that is not UTF-8");
    }
}

/// The header's JSON: compact, in the order given.
std::string header_json(const std::string& file, const std::vector<TensorToWrite>& tensors,
                        const std::map<std::string, std::string>& metadata) {
    std::string json = "{";
    const auto separate = [&] {
        if (json.size() > 1) json += ',';
    };
    if (!metadata.empty()) {
        json += "\"__metadata__\":{";
        for (const auto& [key, value] : metadata)
            json += fmt::format("{}{}:{}", key == metadata.begin()->first ? "" : ",",
                                quoted(key, {file}), quoted(value, {file}));
        json += '}';
    }
    std::set<std::string_view> names;
    uint64_t offset = 0;
    for (const TensorToWrite& t : tensors) {
        const Where where{file, t.name, std::nullopt};
        if (t.name == "__metadata__")
            throw Error(Errc::invalid_argument, where,
                        "found a name that the format keeps for itself");
        if (!names.insert(t.name).second)
            throw Error(Errc::invalid_argument, where, "found this name twice, needed it once");
        const uint64_t bytes = checked_bytes(t, where);
        separate();
        json += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                            quoted(t.name, where), safetensors_name(t.dtype),
                            fmt::join(t.dims, ","), offset, offset + bytes);
        offset += bytes;
    }
    return json + "}";
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     const std::vector<TensorToWrite>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : out_(path) {
    std::string header = header_json(path.string(), tensors, metadata);
    uint64_t length = header.size() + 8;
    length = (length + kAlign - 1) / kAlign * kAlign - 8;
    header.resize(length, ' ');
    if (length > kHeaderLimit)
        throw Error(Errc::invalid_argument, {path.string()},
                    fmt::format("{} tensors need a header of {} bytes, at most {} are allowed",
                                tensors.size(), length, kHeaderLimit));
    for (const TensorToWrite& t : tensors) left_ += checked_bytes(t, {path.string()});
    out_.write(&length, sizeof length);
    out_.write(header.data(), header.size());
}

void SafetensorsWriter::write(const void* data, size_t bytes) {
    EXL3_CHECK(bytes <= left_, "more bytes than the header promises");
    out_.write(data, bytes);
    left_ -= bytes;
}

void SafetensorsWriter::commit() {
    EXL3_CHECK(left_ == 0, "fewer bytes than the header promises");
    out_.commit();
}

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata) {
    SafetensorsWriter writer(path, tensors, metadata);
    for (const TensorToWrite& t : tensors) {
        uint64_t bytes = size_of(t.dtype);
        for (const int64_t d : t.dims) bytes *= static_cast<uint64_t>(d);
        EXL3_CHECK(bytes == 0 || t.data != nullptr, "a tensor without data");
        writer.write(t.data, bytes);
    }
    writer.commit();
}

}  // namespace exl3
