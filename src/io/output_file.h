#pragma once
#include <cstddef>
#include <filesystem>

#include "base/error.h"

namespace exl3 {

/// A file that appears whole or not at all: bytes go to a hidden temporary name in the same folder,
/// and commit() renames it. Destroyed before commit(), the temporary is removed. Used by one
/// thread.
class OutputFile {
public:
    /// Throws Error{io} naming `path` when the folder is missing or not writable.
    explicit OutputFile(std::filesystem::path path);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile();

    /// Appends `bytes` bytes. Throws Error{io} naming the path and the byte reached (disk full...).
    void write(const void* data, size_t bytes);
    /// Syncs the bytes to the disk and gives the file its name, replacing an older one. A symlink
    /// at that name is replaced, never followed. Throws Error{io}; then nothing is left behind.
    void commit();

private:
    [[noreturn]] void fail(std::string_view what) const;
    std::filesystem::path path_, temporary_;
    int fd_ = -1;
    uint64_t written_ = 0;
};

}  // namespace exl3
