#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/ggml_types.h"
#include "io/mapped_file.h"

namespace exl3 {

/// Types of metadata values under the numbers that the format gives them.
enum class GgufType : uint32_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    u64 = 10,
    i64 = 11,
    f64 = 12
};
std::string_view name_of(GgufType type);  ///< "u32", "string"

/// Where a metadata value lies in its file; its bytes have been walked and are all there.
struct GgufValue {
    GgufType type{};
    GgufType element{};   ///< of an array
    uint64_t count = 1;   ///< elements of an array
    uint64_t offset = 0;  ///< of the value, or of an array's first element
};

/// A tensor whose range has been checked against its shape, its type and the file.
struct GgufTensor {
    std::string name;
    const GgmlLayout* layout = nullptr;  ///< nullptr: a type that cannot be decoded
    uint32_t type = 0;                   ///< its number in the file
    std::vector<int64_t> dims;           ///< slowest first; the file lists them the other way
    uint64_t offset = 0;                 ///< bytes from the start of the file
    uint64_t bytes = 0;                  ///< 0 where the layout is unknown
    const std::byte* data = nullptr;     ///< in the mapping; set by GgufModel
    int part = 0;                        ///< of a split model, from 0; set by GgufModel
    int64_t numel() const;
    std::string_view type_name() const;  ///< "Q4_K"; "unknown" without a layout
};

/// What stands before the data of one GGUF file.
struct GgufHeader {
    uint32_t version = 0;
    std::map<std::string, GgufValue, std::less<>> metadata;
    std::vector<GgufTensor> tensors;  ///< in the order of their bytes
    uint64_t data_start = 0;
};

/// Parses the header of a version 2 or 3 file, little-endian. Refuses, naming file, key or tensor
/// and the byte: another magic or version, big-endian files, strings and arrays that pass the end,
/// unknown value types, repeated or unprintable keys and tensors, more than four dimensions, shapes
/// that overflow or do not hold whole blocks, an alignment that is no multiple of 8, tensors off
/// that alignment, outside the file or on top of each other.
/// @param bytes  the whole file
Result<GgufHeader> parse_gguf_header(std::string_view bytes, const std::string& path);

/// A model in GGUF: one file, or the parts NAME-00001-of-0000N.gguf of a split one. Metadata has
/// typed, checked access; failures name file and key, what was found and what was needed.
class GgufModel {
public:
    /// Maps the file; if its name is that of a part, all parts, which must be complete.
    static Result<GgufModel> open(const std::filesystem::path& path);

    const std::string& path() const { return path_; }  ///< of the part that holds the metadata
    bool has(std::string_view key) const { return metadata().contains(key); }
    /// Every key and what it is, sorted.
    const std::map<std::string, GgufValue, std::less<>>& metadata() const;
    /// T: bool, int, int64_t, float, double, std::string. Any integer that fits passes for one.
    /// Throws Error{invalid_file}.
    template <typename T>
    T get(std::string_view key) const;
    template <typename T>
    T get(std::string_view key, T otherwise) const {
        return has(key) ? get<T>(key) : otherwise;
    }
    /// Elements of an array; views into the mapping. Missing: empty.
    std::vector<std::string_view> strings(std::string_view key) const;
    /// Elements of an array of integers, bools counting as 0 and 1.
    std::vector<int64_t> integers(std::string_view key) const;
    /// Elements of an array of numbers of any kind.
    std::vector<double> numbers(std::string_view key) const;
    bool is_array(std::string_view key) const;
    /// Throws Error{invalid_file}: "FILE: key 'KEY': WHAT".
    [[noreturn]] void fail(std::string_view key, std::string_view what) const;

    const std::map<std::string, GgufTensor, std::less<>>& tensors() const { return tensors_; }
    const GgufTensor* find(std::string_view tensor) const;  ///< nullptr: no such tensor
    /// For errors about a tensor: the part that holds it.
    Where where(const GgufTensor& tensor) const;

private:
    struct Part {
        std::string path;
        std::shared_ptr<const MappedFile> mapping;
        GgufHeader header;
    };
    static Part open_part(const std::filesystem::path& path);
    const GgufValue& value(std::string_view key) const;
    const GgufValue& array(std::string_view key) const;
    std::string path_;
    std::vector<Part> parts_;
    std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace exl3
