#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/tensor.h"
#include "io/mapped_file.h"
#include "io/output_file.h"

namespace exl3 {

/// One entry of a safetensors header, already checked against the file's size and its own shape.
struct TensorInfo {
    std::string name;
    DType dtype = DType::f32;
    std::vector<int64_t> dims;  ///< any rank; empty: a scalar
    uint64_t offset = 0;        ///< bytes from the start of the file
    uint64_t bytes = 0;
    int64_t numel() const;
};
std::string to_string(const std::vector<int64_t>& dims);  ///< "(3, 128)"

/// A memory-mapped safetensors file. Nothing is read before it is asked for; tensors of this file
/// stay valid as long as one of them, or the file, lives.
class SafetensorsFile {
public:
    /// Refuses, naming file, tensor and offset: a truncated or absurdly long header (limit
    /// 100 MiB), malformed JSON, unknown dtypes, shapes that overflow or disagree with the byte
    /// range, ranges that overlap, leave bytes unused or pass the end of the file, duplicate names.
    static Result<SafetensorsFile> open(const std::filesystem::path& path);

    /// Tensors over bytes in memory, for models that no file holds. Offsets may overlap.
    /// @param name  stands for the path in errors
    static SafetensorsFile over(std::string name, std::vector<TensorInfo> tensors,
                                std::shared_ptr<const MappedFile> bytes);

    const std::string& path() const;
    const std::vector<TensorInfo>& tensors() const;       ///< in file order
    const TensorInfo* find(std::string_view name) const;  ///< nullptr: no such tensor
    /// The bytes of a tensor in the mapping (not aligned to anything: the format promises nothing).
    ConstView view(
        const TensorInfo& info) const;  ///< rank 0 reads as shape (1); rank > 4 as (numel)
    std::shared_ptr<const MappedFile> mapping() const;

private:
    struct Data;
    std::shared_ptr<const Data> data_;
};

/// Parses a header alone. For the fuzz target.
/// @param bytes       the file from its start, at least to the end of the header
/// @param file_bytes  the size of the whole file
/// @return the tensors in the order of their bytes
Result<std::vector<TensorInfo>> parse_safetensors_header(std::string_view bytes,
                                                         uint64_t file_bytes,
                                                         const std::string& path);

/// A tensor to write: the bytes are read when its turn comes.
struct TensorToWrite {
    std::string name;
    DType dtype = DType::f32;
    std::vector<int64_t> dims;
    const void* data = nullptr;  ///< dense, valid until write_safetensors returns
};
/// Writes a file under a temporary name beside `path`, syncs it and renames it. Tensors keep their
/// order; the header is padded with spaces so that the first one starts at a multiple of 64 bytes.
/// @param metadata  the `__metadata__` object; none is written when empty
/// Throws Error{io} naming the path (disk full included); then nothing is left behind.
/// Throws Error{invalid_argument} for names that are repeated, reserved or not UTF-8, and for
/// negative dimensions.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// The same for tensors that are made piece by piece: the header is written at once, their bytes
/// follow in order, and the file gets its name only in commit(). Destroyed before, it leaves
/// nothing behind. Errors as write_safetensors.
class SafetensorsWriter {
public:
    /// @param tensors  `data` is not looked at
    SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                      const std::map<std::string, std::string>& metadata = {});
    void write(const void* data, size_t bytes);  ///< the next bytes, in any portions
    void commit();                               ///< all promised bytes must have been written

private:
    OutputFile out_;
    uint64_t left_ = 0;
};

}  // namespace exl3
