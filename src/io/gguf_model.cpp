// Parts of a split model as one, and typed access to the metadata.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "io/gguf.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = "-00001-of-00001.gguf";

struct PartName {
    std::string stem;
    int number = 0, count = 0;
};

// "x-00002-of-00003.gguf": stem "x", number 2, count 3.
std::optional<PartName> part_name(const std::string& file) {
    if (file.size() <= kEnding.size()) return std::nullopt;
    const std::string_view end = std::string_view(file).substr(file.size() - kEnding.size());
    PartName p{.stem = file.substr(0, file.size() - kEnding.size())};
    const auto digits = [&](size_t from, int& out) {
        const char* begin = end.data() + from;
        return std::from_chars(begin, begin + 5, out).ptr == begin + 5;
    };
    if (end[0] != '-' || end.substr(6, 4) != "-of-" || end.substr(15) != ".gguf" ||
        !digits(1, p.number) || !digits(10, p.count) || p.number < 1 || p.number > p.count)
        return std::nullopt;
    return p;
}

template <typename T>
T at(const MappedFile& file, uint64_t offset) {
    T v;
    std::memcpy(&v, file.data() + offset, sizeof v);
    return v;
}

/// Any integer (or bool) as i64; nullopt for other types and for u64 beyond its range.
std::optional<int64_t> integer_at(const MappedFile& f, GgufType t, uint64_t o) {
    switch (t) {
        case GgufType::u8:
        case GgufType::boolean: return at<uint8_t>(f, o);
        case GgufType::i8: return at<int8_t>(f, o);
        case GgufType::u16: return at<uint16_t>(f, o);
        case GgufType::i16: return at<int16_t>(f, o);
        case GgufType::u32: return at<uint32_t>(f, o);
        case GgufType::i32: return at<int32_t>(f, o);
        case GgufType::i64: return at<int64_t>(f, o);
        case GgufType::u64: {
            const auto v = at<uint64_t>(f, o);
            if (v > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
            return static_cast<int64_t>(v);
        }
        default: return std::nullopt;
    }
}

/// The shortest decimal number that is this f32: 1e-05 rather than 9.99999974737875e-06.
double as_written(float v) {
    if (!std::isfinite(v)) return v;
    const std::string text = fmt::format("{}", v);
    double d = v;
    std::from_chars(text.data(), text.data() + text.size(), d);
    return d;
}

std::optional<double> number_at(const MappedFile& f, GgufType t, uint64_t o) {
    if (t == GgufType::f32) return as_written(at<float>(f, o));
    if (t == GgufType::f64) return at<double>(f, o);
    if (t == GgufType::boolean) return std::nullopt;
    const auto i = integer_at(f, t, o);
    return i ? std::optional<double>(static_cast<double>(*i)) : std::nullopt;
}

uint64_t size_of_element(GgufType t) {
    switch (t) {
        case GgufType::u16:
        case GgufType::i16: return 2;
        case GgufType::u32:
        case GgufType::i32:
        case GgufType::f32: return 4;
        case GgufType::u64:
        case GgufType::i64:
        case GgufType::f64: return 8;
        default: return 1;
    }
}

}  // namespace

GgufModel::Part GgufModel::open_part(const fs::path& path) {
    Part p;
    p.path = path.string();
    p.mapping = MappedFile::open(path).value();
    p.header = parse_gguf_header(p.mapping->text(), p.path).value();
    return p;
}

const std::map<std::string, GgufValue, std::less<>>& GgufModel::metadata() const {
    return parts_.front().header.metadata;
}

void GgufModel::fail(std::string_view key, std::string_view what) const {
    throw Error(Errc::invalid_file, {path_, {}, {}}, fmt::format("key '{}': {}", key, what));
}

const GgufValue& GgufModel::value(std::string_view key) const {
    const auto it = metadata().find(key);
    if (it == metadata().end()) fail(key, "missing");
    return it->second;
}

const GgufValue& GgufModel::array(std::string_view key) const {
    const GgufValue& v = value(key);
    if (v.type != GgufType::array)
        fail(key, fmt::format("found {}, needed an array", name_of(v.type)));
    return v;
}

bool GgufModel::is_array(std::string_view key) const {
    return has(key) && value(key).type == GgufType::array;
}

template <>
int64_t GgufModel::get(std::string_view key) const {
    const GgufValue& v = value(key);
    const auto i = v.type == GgufType::boolean
                       ? std::nullopt
                       : integer_at(*parts_.front().mapping, v.type, v.offset);
    if (!i) fail(key, fmt::format("found {}, needed an integer", name_of(v.type)));
    return *i;
}

template <>
int GgufModel::get(std::string_view key) const {
    const auto i = get<int64_t>(key);
    if (i < std::numeric_limits<int>::min() || i > std::numeric_limits<int>::max())
        fail(key, fmt::format("found {}, needed a number of 32 bits", i));
    return static_cast<int>(i);
}

template <>
double GgufModel::get(std::string_view key) const {
    const GgufValue& v = value(key);
    const auto d = number_at(*parts_.front().mapping, v.type, v.offset);
    if (!d) fail(key, fmt::format("found {}, needed a number", name_of(v.type)));
    if (!std::isfinite(*d)) fail(key, fmt::format("found {}, needed a finite number", *d));
    return *d;
}

template <>
float GgufModel::get(std::string_view key) const {
    return static_cast<float>(get<double>(key));
}

template <>
bool GgufModel::get(std::string_view key) const {
    const GgufValue& v = value(key);
    if (v.type != GgufType::boolean)
        fail(key, fmt::format("found {}, needed a bool", name_of(v.type)));
    return at<uint8_t>(*parts_.front().mapping, v.offset) != 0;
}

template <>
std::string GgufModel::get(std::string_view key) const {
    const GgufValue& v = value(key);
    if (v.type != GgufType::string)
        fail(key, fmt::format("found {}, needed a string", name_of(v.type)));
    const MappedFile& f = *parts_.front().mapping;
    return std::string(f.text().substr(v.offset + 8, at<uint64_t>(f, v.offset)));
}

std::vector<std::string_view> GgufModel::strings(std::string_view key) const {
    if (!has(key)) return {};
    const GgufValue& v = array(key);
    if (v.element != GgufType::string)
        fail(key, fmt::format("found an array of {}, needed strings", name_of(v.element)));
    const MappedFile& f = *parts_.front().mapping;
    std::vector<std::string_view> all;
    all.reserve(v.count);
    uint64_t o = v.offset;
    for (uint64_t i = 0; i < v.count; ++i) {
        const auto length = at<uint64_t>(f, o);
        all.push_back(f.text().substr(o + 8, length));
        o += 8 + length;
    }
    return all;
}

std::vector<int64_t> GgufModel::integers(std::string_view key) const {
    if (!has(key)) return {};
    const GgufValue& v = array(key);
    std::vector<int64_t> all;
    for (uint64_t i = 0; i < v.count; ++i) {
        const auto n = integer_at(*parts_.front().mapping, v.element,
                                  v.offset + i * size_of_element(v.element));
        if (!n) fail(key, fmt::format("found an array of {}, needed integers", name_of(v.element)));
        all.push_back(*n);
    }
    return all;
}

std::vector<double> GgufModel::numbers(std::string_view key) const {
    if (!has(key)) return {};
    const GgufValue& v = array(key);
    std::vector<double> all;
    for (uint64_t i = 0; i < v.count; ++i) {
        const auto n = number_at(*parts_.front().mapping, v.element,
                                 v.offset + i * size_of_element(v.element));
        if (!n) fail(key, fmt::format("found an array of {}, needed numbers", name_of(v.element)));
        all.push_back(*n);
    }
    return all;
}

// Below the specializations of get, which it uses.
Result<GgufModel> GgufModel::open(const fs::path& path) {
    try {
        GgufModel m;
        const auto split = part_name(path.filename().string());
        const int count = split ? split->count : 1;
        for (int i = 1; i <= count; ++i)
            m.parts_.push_back(
                open_part(split ? path.parent_path() /
                                      fmt::format("{}-{:05}-of-{:05}.gguf", split->stem, i, count)
                                : path));
        m.path_ = m.parts_.front().path;
        const int promised = m.get<int>("split.count", 1);
        if (promised > 1 && promised != count)
            m.fail("split.count", fmt::format("found {}, needed the {} parts that the name gives",
                                              promised, count));
        for (const Part& p : m.parts_)
            for (const GgufTensor& t : p.header.tensors) {
                GgufTensor copy = t;
                copy.data = p.mapping->data() + t.offset;
                copy.part = static_cast<int>(&p - m.parts_.data());
                if (!m.tensors_.emplace(t.name, std::move(copy)).second)
                    throw Error(Errc::invalid_file, {p.path, t.name, t.offset},
                                "found this name twice, needed it once");
            }
        const auto total = m.get<int64_t>("split.tensors.count", -1);
        if (total >= 0 && static_cast<size_t>(total) != m.tensors_.size())
            m.fail("split.tensors.count",
                   fmt::format("found {}, the parts hold {}", total, m.tensors_.size()));
        return m;
    } catch (const Error& e) {
        return e;
    }
}

const GgufTensor* GgufModel::find(std::string_view tensor) const {
    const auto it = tensors_.find(tensor);
    return it == tensors_.end() ? nullptr : &it->second;
}

Where GgufModel::where(const GgufTensor& tensor) const {
    return {parts_[static_cast<size_t>(tensor.part)].path, tensor.name, tensor.offset};
}

}  // namespace exl3
