#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace exl3 {

/// A whole file mapped read-only, or memory that stands in for one. An empty file has size 0 and no
/// data.
class MappedFile {
public:
    static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);
    /// Memory that no file backs, filled once by `fill`. Throws Error{out_of_memory}.
    static std::shared_ptr<const MappedFile> in_memory(size_t bytes,
                                                       const std::function<void(std::byte*)>& fill);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    const std::byte* data() const { return data_; }
    size_t size() const { return size_; }
    std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

private:
    MappedFile() = default;
    const std::byte* data_ = nullptr;
    size_t size_ = 0;
};

/// The whole of a small file (refused above `limit` bytes). Error{io} or {invalid_file} names it.
Result<std::string> read_file(const std::filesystem::path& path, size_t limit = size_t{1} << 30);

/// Writes `text` under a temporary name beside `path`, syncs it and renames it. Throws Error{io}.
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace exl3
