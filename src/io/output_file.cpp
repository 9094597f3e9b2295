#include "io/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace exl3 {
namespace {

/// A name beside `path` that no other process or thread uses. It is hidden and does not end in
/// .safetensors, so what a killed process leaves is never taken for a part of the checkpoint.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
    static std::atomic<unsigned> counter{0};
    constexpr size_t kNameLimit = 200;  // file systems allow 255 bytes, and the suffix needs some
    return path.parent_path() / fmt::format(".{}.{}.{}.tmp",
                                            path.filename().string().substr(0, kNameLimit),
                                            ::getpid(), counter.fetch_add(1));
}

/// Makes a rename in `folder` survive a power cut. Some file systems cannot sync a folder; the file
/// itself is complete either way, so that is no failure.
void sync_folder(const std::filesystem::path& folder) {
    const int fd =
        ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    ::fsync(fd);
    ::close(fd);
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
    temporary_ = temporary_beside(path_);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("cannot create the file");
}

OutputFile::~OutputFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::fail(std::string_view what) const {
    throw Error(Errc::io, {path_.string()},
                fmt::format("{} ({} bytes written): {}", what, written_, std::strerror(errno)));
}

void OutputFile::write(const void* data, size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
        // The kernel takes at most 2 GiB a call; smaller pieces keep the byte in an error exact.
        const ssize_t n = ::write(fd_, from, std::min(bytes, size_t{1} << 26));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("cannot write");
        from += n;
        bytes -= static_cast<size_t>(n);
        written_ += static_cast<uint64_t>(n);
    }
}

void OutputFile::commit() {
    if (::fsync(fd_) != 0) fail("cannot write to the disk");
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0) fail("cannot finish writing");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot rename the finished file");
    temporary_.clear();
    sync_folder(path_.parent_path());
}

}  // namespace exl3
