#include "io/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "io/safetensors.h"

namespace exl3 {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read in place");

constexpr uint64_t kMaxKey = 65535;  // the format's own limit
constexpr uint64_t kMaxName = 1024;  // the format asks for 64; some writers exceed that
constexpr int kMaxDims = 4;
constexpr int kMaxNesting = 4;  // arrays of arrays: allowed by the format, used by no key known
constexpr uint64_t kDefaultAlignment = 32;

/// Bytes of a value of fixed size; 0 for strings and arrays.
uint64_t fixed_bytes(GgufType t) {
    switch (t) {
        case GgufType::u8:
        case GgufType::i8:
        case GgufType::boolean: return 1;
        case GgufType::u16:
        case GgufType::i16: return 2;
        case GgufType::u32:
        case GgufType::i32:
        case GgufType::f32: return 4;
        case GgufType::u64:
        case GgufType::i64:
        case GgufType::f64: return 8;
        case GgufType::string:
        case GgufType::array: return 0;
    }
    return 0;
}

/// Names end up in error messages and in the header of a safetensors file.
bool is_printable_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

/// Parses one header. Members throw Error; the public function turns that into a Result.
class HeaderParser {
public:
    HeaderParser(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

    GgufHeader parse() {
        GgufHeader h;
        h.version = magic_and_version();
        const auto tensors = read<uint64_t>("the number of tensors");
        const auto keys = read<uint64_t>("the number of keys");
        // Counts size nothing: each entry takes bytes of the file, so a wrong one runs into its
        // end.
        for (uint64_t i = 0; i < keys; ++i) key(h);
        const uint64_t alignment = read_alignment(h);
        for (uint64_t i = 0; i < tensors; ++i) h.tensors.push_back(tensor());
        h.data_start = (at_ + alignment - 1) / alignment * alignment;
        place(h, alignment);
        return h;
    }

private:
    [[noreturn]] void refuse(const std::string& tensor, uint64_t offset, std::string_view what) {
        throw Error(Errc::invalid_file, {path_, tensor, offset}, what);
    }

    void need(uint64_t bytes, std::string_view what) {
        const uint64_t left = bytes_.size() - at_;
        if (bytes > left)
            refuse({}, at_,
                   fmt::format("{} needs {} bytes, file ends after {}", what, bytes, left));
    }

    template <typename T>
    T read(std::string_view what) {
        need(sizeof(T), what);
        T v;
        std::memcpy(&v, bytes_.data() + at_, sizeof v);
        at_ += sizeof v;
        return v;
    }

    std::string_view string(std::string_view what, uint64_t limit) {
        const uint64_t start = at_;
        const auto length = read<uint64_t>(what);
        if (length > limit)
            refuse({}, start,
                   fmt::format("{}: found a length of {}, needed at most {}", what, length, limit));
        need(length, what);
        const std::string_view s = bytes_.substr(at_, length);
        at_ += length;
        return s;
    }

    uint32_t magic_and_version() {
        if (!bytes_.starts_with("GGUF"))
            refuse({}, 0, "found no 'GGUF' at the start, needed a GGUF file");
        at_ = 4;
        const auto version = read<uint32_t>("the version");
        if (version == 2 || version == 3) return version;
        const uint32_t swapped = version >> 24 | (version >> 8 & 0xff00) | version << 24;
        if (swapped == 2 || swapped == 3)
            throw Error(Errc::unsupported, {path_, {}, 4}, "is big-endian, needed little-endian");
        throw Error(Errc::unsupported, {path_, {}, 4},
                    fmt::format("found version {}, needed 2 or 3", version));
    }

    void key(GgufHeader& h) {
        const uint64_t start = at_;
        const std::string_view name = string("a key", kMaxKey);
        if (name.empty() || !is_printable_ascii(name))
            refuse({}, start, "found a key that is empty or not printable ASCII");
        const std::string what = fmt::format("key '{}'", name);
        GgufValue v;
        v.type = type(what);
        if (v.type == GgufType::array) {
            v.element = type(what);
            v.count = read<uint64_t>(what);
            v.offset = at_;
            skip_elements(v.element, v.count, what, 1);
        } else {
            v.offset = at_;
            skip_elements(v.type, 1, what, 0);
        }
        if (!h.metadata.emplace(name, v).second)
            refuse({}, start, fmt::format("{}: found twice, needed once", what));
    }

    GgufType type(const std::string& what) {
        const uint64_t start = at_;
        const auto number = read<uint32_t>(what);
        if (number > static_cast<uint32_t>(GgufType::f64))
            refuse({}, start,
                   fmt::format("{}: found the value type {}, needed 0 to 12", what, number));
        return static_cast<GgufType>(number);
    }

    void skip_elements(GgufType t, uint64_t count, const std::string& what, int depth) {
        if (const uint64_t size = fixed_bytes(t)) {
            if (count > (bytes_.size() - at_) / size)
                refuse({}, at_,
                       fmt::format("{}: {} values of {} bytes pass the end of the file", what,
                                   count, size));
            if (t == GgufType::boolean) check_bools(count, what);
            at_ += count * size;
            return;
        }
        if (t == GgufType::array && depth >= kMaxNesting)
            refuse({}, at_, fmt::format("{}: arrays nested deeper than {}", what, kMaxNesting));
        for (uint64_t i = 0; i < count; ++i) {
            if (t == GgufType::string) {
                string(what, std::numeric_limits<uint64_t>::max());
            } else {
                const GgufType inner = type(what);
                const auto inner_count = read<uint64_t>(what);
                skip_elements(inner, inner_count, what, depth + 1);
            }
        }
    }

    void check_bools(uint64_t count, const std::string& what) {
        for (uint64_t i = 0; i < count; ++i)
            if (static_cast<uint8_t>(bytes_[at_ + i]) > 1)
                refuse({}, at_ + i, fmt::format("{}: found a bool that is not 0 or 1", what));
    }

    uint64_t read_alignment(const GgufHeader& h) {
        const auto it = h.metadata.find("general.alignment");
        if (it == h.metadata.end()) return kDefaultAlignment;
        uint32_t v = 0;
        if (it->second.type != GgufType::u32)
            refuse({}, it->second.offset, "key 'general.alignment': needed a u32");
        std::memcpy(&v, bytes_.data() + it->second.offset, sizeof v);
        if (v == 0 || v % 8 != 0)
            refuse({}, it->second.offset,
                   fmt::format("key 'general.alignment': found {}, needed a multiple of 8", v));
        return v;
    }

    GgufTensor tensor() {
        const uint64_t start = at_;
        GgufTensor t;
        t.name = string("a tensor's name", kMaxName);
        if (t.name.empty() || !is_printable_ascii(t.name))
            refuse({}, start, "found a tensor name that is empty or not printable ASCII");
        const auto rank = read<uint32_t>(fmt::format("tensor '{}'", t.name));
        if (rank > kMaxDims)
            refuse(t.name, start, fmt::format("found {} dimensions, needed at most 4", rank));
        uint64_t elements = 1;
        for (uint32_t i = 0; i < rank; ++i) {
            const auto d = read<uint64_t>(fmt::format("tensor '{}'", t.name));
            // Eight bytes an element is the most there is.
            if (d == 0 || elements > std::numeric_limits<int64_t>::max() / 8 / d)
                refuse(t.name, start,
                       fmt::format("found a dimension of {}, needed one that a file can hold", d));
            elements *= d;
            t.dims.insert(t.dims.begin(), static_cast<int64_t>(d));
        }
        t.type = read<uint32_t>(fmt::format("tensor '{}'", t.name));
        t.offset = read<uint64_t>(fmt::format("tensor '{}'", t.name));
        t.layout = ggml_layout(t.type);
        if (!t.layout) return t;
        const int64_t row = t.dims.empty() ? 1 : t.dims.back();
        if (row % t.layout->elements != 0)
            refuse(t.name, start,
                   fmt::format("{} packs {} elements, found rows of {}", t.layout->name,
                               t.layout->elements, row));
        t.bytes = elements / static_cast<uint64_t>(t.layout->elements) *
                  static_cast<uint64_t>(t.layout->bytes);
        return t;
    }

    // Offsets count from the start of the data until here.
    void place(GgufHeader& h, uint64_t alignment) {
        const uint64_t file = bytes_.size();
        for (GgufTensor& t : h.tensors) {
            if (t.offset % alignment != 0)
                refuse(t.name, h.data_start,
                       fmt::format("found the offset {}, needed a multiple of {}", t.offset,
                                   alignment));
            const uint64_t room = file > h.data_start ? file - h.data_start : 0;
            if (t.offset > room || t.bytes > room - t.offset)
                refuse(t.name, h.data_start,
                       fmt::format("needs {} bytes at offset {} of the data, file holds {}",
                                   t.bytes, t.offset, room));
            t.offset += h.data_start;
        }
        std::stable_sort(h.tensors.begin(), h.tensors.end(),
                         [](const GgufTensor& a, const GgufTensor& b) {
                             return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
                         });
        for (size_t i = 1; i < h.tensors.size(); ++i) {
            const GgufTensor &before = h.tensors[i - 1], &t = h.tensors[i];
            if (before.offset + before.bytes > t.offset)
                refuse(t.name, t.offset,
                       fmt::format("overlaps tensor '{}', which ends at byte {}", before.name,
                                   before.offset + before.bytes));
        }
    }

    std::string_view bytes_;
    const std::string& path_;
    uint64_t at_ = 0;
};

}  // namespace

std::string_view name_of(GgufType type) {
    static constexpr std::string_view kNames[] = {"u8",  "i8",  "u16",  "i16",    "u32",
                                                  "i32", "f32", "bool", "string", "array",
                                                  "u64", "i64", "f64"};
    return kNames[static_cast<uint32_t>(type)];
}

int64_t GgufTensor::numel() const {
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
}

std::string_view GgufTensor::type_name() const {
    return layout ? layout->name : "unknown";
}

Result<GgufHeader> parse_gguf_header(std::string_view bytes, const std::string& path) {
    try {
        return HeaderParser(bytes, path).parse();
    } catch (const Error& e) {
        return e;
    }
}

}  // namespace exl3
