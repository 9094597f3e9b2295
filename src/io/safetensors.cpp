#include "io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "io/dtype_names.h"
#include "io/json.h"

namespace exl3 {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data are little-endian");

constexpr uint64_t kLengthBytes = 8;                    // the header's length stands before it
constexpr uint64_t kHeaderLimit = uint64_t{100} << 20;  // as in the format's own implementation

/// Parses one header. Members throw Error; the public function turns that into a Result.
class HeaderParser {
public:
    HeaderParser(std::string_view bytes, uint64_t file_bytes, const std::string& path)
        : bytes_(bytes), file_bytes_(file_bytes), path_(path) {}

    std::vector<TensorInfo> parse() {
        const std::string_view text = header_text();
        data_start_ = kLengthBytes + text.size();
        std::vector<uint64_t> places;
        auto json = parse_json(text, path_, &places, kLengthBytes);
        if (!json) throw Error(json.error());

        std::vector<TensorInfo> tensors;
        tensors.reserve(json->size());
        size_t i = 0;
        for (const auto& [name, entry] : json->items()) {
            const uint64_t place = places[i++];
            if (name == "__metadata__")
                check_metadata(entry, place);
            else
                tensors.push_back(tensor(name, entry, place));
        }
        order_and_check_coverage(tensors);
        return tensors;
    }

private:
    [[noreturn]] void refuse(const std::string& tensor, uint64_t offset, std::string_view what) {
        throw Error(Errc::invalid_file, {path_, tensor, offset}, what);
    }

    std::string_view header_text() {
        if (bytes_.size() < kLengthBytes)
            refuse(
                {}, 0,
                fmt::format("needs 8 bytes of header length, file ends after {}", bytes_.size()));
        uint64_t length = 0;
        std::memcpy(&length, bytes_.data(), kLengthBytes);
        if (length > kHeaderLimit)
            refuse({}, 0,
                   fmt::format("found a header length of {} bytes, needed at most {}", length,
                               kHeaderLimit));
        const uint64_t available = std::min<uint64_t>(file_bytes_, bytes_.size()) - kLengthBytes;
        if (length > available)
            refuse({}, kLengthBytes,
                   fmt::format("header needs {} bytes, file ends after {}", length, available));
        const std::string_view text = bytes_.substr(kLengthBytes, length);
        if (text.empty() || text.front() != '{')
            refuse({}, kLengthBytes, "header: needed '{' as the first byte of a JSON object");
        return text;
    }

    void check_metadata(const Json& entry, uint64_t place) {
        if (!entry.is_object())
            refuse({}, place,
                   fmt::format("'__metadata__': found {}, needed an object of strings",
                               entry.type_name()));
        for (const auto& [key, value] : entry.items())
            if (!value.is_string())
                refuse({}, place,
                       fmt::format("'__metadata__': key '{}': found {}, needed a string", key,
                                   value.type_name()));
    }

    TensorInfo tensor(const std::string& name, const Json& entry, uint64_t place) {
        if (!entry.is_object())
            refuse(name, place,
                   fmt::format("found {}, needed an object with dtype, shape and "
                               "data_offsets",
                               entry.type_name()));
        for (const auto& [key, value] : entry.items())
            if (key != "dtype" && key != "shape" && key != "data_offsets")
                refuse(
                    name, place,
                    fmt::format("found key '{}', needed dtype, shape and data_offsets alone", key));
        for (const char* key : {"dtype", "shape", "data_offsets"})
            if (!entry.contains(key))
                refuse(name, place, fmt::format("found no key '{}', needed one", key));

        TensorInfo info;
        info.name = name;
        info.dtype = dtype(name, entry["dtype"], place);
        info.dims = shape(name, entry["shape"], place);
        const auto [begin, end] = range(name, entry["data_offsets"], place);
        info.offset = data_start_ + begin;
        info.bytes = end - begin;
        const uint64_t needed = static_cast<uint64_t>(info.numel()) * size_of(info.dtype);
        if (needed != info.bytes)
            refuse(name, place,
                   fmt::format("{} {} needs {} bytes, data_offsets [{}, {}] give {}",
                               name_of(info.dtype), to_string(info.dims), needed, begin, end,
                               info.bytes));
        if (info.offset + info.bytes > file_bytes_)
            refuse(name, info.offset,
                   fmt::format("needs {} bytes, file ends after {}", info.bytes,
                               file_bytes_ > info.offset ? file_bytes_ - info.offset : 0));
        return info;
    }

    DType dtype(const std::string& name, const Json& value, uint64_t place) {
        if (!value.is_string())
            refuse(name, place,
                   fmt::format("'dtype': found {}, needed a string", value.type_name()));
        const auto& text = value.get_ref<const std::string&>();
        const auto known = dtype_from_safetensors(text);
        if (!known)
            refuse(name, place,
                   fmt::format("'dtype': found '{}', needed one of {}", text.substr(0, 40),
                               all_safetensors_dtypes()));
        return *known;
    }

    std::vector<int64_t> shape(const std::string& name, const Json& value, uint64_t place) {
        if (!value.is_array())
            refuse(name, place,
                   fmt::format("'shape': found {}, needed a list of integers", value.type_name()));
        std::vector<int64_t> dims;
        dims.reserve(value.size());
        // Eight bytes an element is the most there is. Zero dimensions do not excuse the others:
        // who multiplies in another order must not overflow either.
        constexpr uint64_t kMost = std::numeric_limits<int64_t>::max() / 8;
        uint64_t product = 1;
        for (const Json& d : value) {
            if (!d.is_number_unsigned())
                refuse(name, place,
                       fmt::format("'shape': found {}, needed integers of 0 or more",
                                   d.is_number() ? d.dump() : d.type_name()));
            const auto n = d.get<uint64_t>();
            if (n > 0 && product > kMost / n)
                refuse(name, place, "'shape': the product of the dimensions overflows");
            if (n > 0) product *= n;
            dims.push_back(static_cast<int64_t>(n));
        }
        return dims;
    }

    std::pair<uint64_t, uint64_t> range(const std::string& name, const Json& value,
                                        uint64_t place) {
        if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() ||
            !value[1].is_number_unsigned())
            refuse(name, place, "'data_offsets': needed a list of two integers of 0 or more");
        const auto begin = value[0].get<uint64_t>(), end = value[1].get<uint64_t>();
        if (begin > end)
            refuse(name, place,
                   fmt::format("'data_offsets': found [{}, {}], needed begin <= end", begin, end));
        // Offsets beyond 2^62 cannot be in a file, and adding to them would wrap around.
        if (end > uint64_t{1} << 62)
            refuse(name, place,
                   fmt::format("'data_offsets': found [{}, {}], file holds {} bytes of data", begin,
                               end, file_bytes_ - data_start_));
        return {begin, end};
    }

    /// Sorts by place in the file. Every byte of data must belong to exactly one tensor: overlaps
    /// are how a crafted file plays tricks, and holes or a longer tail mean that header and data
    /// are not of one piece. The format's own implementation asks for the same.
    void order_and_check_coverage(std::vector<TensorInfo>& tensors) {
        std::stable_sort(tensors.begin(), tensors.end(),
                         [](const TensorInfo& a, const TensorInfo& b) {
                             return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
                         });
        uint64_t covered = data_start_;
        const TensorInfo* before = nullptr;
        for (const TensorInfo& t : tensors) {
            if (t.offset < covered)
                refuse(t.name, t.offset,
                       fmt::format("overlaps tensor '{}', which ends at byte {}", before->name,
                                   covered));
            if (t.offset > covered)
                refuse(t.name, covered,
                       fmt::format("found {} bytes of no tensor before it, needed its data",
                                   t.offset - covered));
            covered = t.offset + t.bytes;
            before = &t;
        }
        if (covered != file_bytes_)
            refuse({}, covered,
                   fmt::format("found {} bytes after the last tensor, needed the end "
                               "of the file",
                               file_bytes_ - covered));
    }

    std::string_view bytes_;
    uint64_t file_bytes_;
    const std::string& path_;
    uint64_t data_start_ = 0;
};

}  // namespace

int64_t TensorInfo::numel() const {
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
}

std::string to_string(const std::vector<int64_t>& dims) {
    return fmt::format("({})", fmt::join(dims, ", "));
}

Result<std::vector<TensorInfo>> parse_safetensors_header(std::string_view bytes,
                                                         uint64_t file_bytes,
                                                         const std::string& path) {
    try {
        return HeaderParser(bytes, file_bytes, path).parse();
    } catch (const Error& e) {
        return e;
    }
}

struct SafetensorsFile::Data {
    std::string path;
    std::shared_ptr<const MappedFile> mapping;
    std::vector<TensorInfo> tensors;
    std::unordered_map<std::string_view, const TensorInfo*> by_name;
};

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
    auto data = std::make_shared<Data>();
    data->path = path.string();
    auto mapping = MappedFile::open(path);
    if (!mapping) return mapping.error();
    data->mapping = *mapping;
    auto tensors =
        parse_safetensors_header(data->mapping->text(), data->mapping->size(), data->path);
    if (!tensors) return tensors.error();
    data->tensors = std::move(*tensors);
    data->by_name.reserve(data->tensors.size());
    for (const TensorInfo& t : data->tensors) data->by_name.emplace(t.name, &t);
    SafetensorsFile file;
    file.data_ = std::move(data);
    return file;
}

SafetensorsFile SafetensorsFile::over(std::string name, std::vector<TensorInfo> tensors,
                                      std::shared_ptr<const MappedFile> bytes) {
    auto data = std::make_shared<Data>();
    data->path = std::move(name);
    data->mapping = std::move(bytes);
    data->tensors = std::move(tensors);
    for (const TensorInfo& t : data->tensors) {
        EXL3_CHECK(t.offset + t.bytes <= data->mapping->size(), t.name);
        EXL3_CHECK(data->by_name.emplace(t.name, &t).second, t.name);
    }
    SafetensorsFile file;
    file.data_ = std::move(data);
    return file;
}

const std::string& SafetensorsFile::path() const {
    return data_->path;
}
const std::vector<TensorInfo>& SafetensorsFile::tensors() const {
    return data_->tensors;
}
std::shared_ptr<const MappedFile> SafetensorsFile::mapping() const {
    return data_->mapping;
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
    const auto it = data_->by_name.find(name);
    return it == data_->by_name.end() ? nullptr : it->second;
}

ConstView SafetensorsFile::view(const TensorInfo& info) const {
    Shape shape;
    if (info.dims.size() > shape.dim.size()) {
        shape = {info.numel()};
    } else if (info.dims.empty()) {
        shape = {1};
    } else {
        std::copy(info.dims.begin(), info.dims.end(), shape.dim.begin());
        shape.rank = static_cast<int>(info.dims.size());
    }
    return dense(data_->mapping->data() + info.offset, info.dtype, shape);
}

}  // namespace exl3
