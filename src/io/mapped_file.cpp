#include "io/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/output_file.h"

namespace exl3 {
namespace {

/// A file descriptor open for reading.
struct InputFile {
    int fd = -1;
    size_t size = 0;
    InputFile() = default;
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;
    InputFile(InputFile&& o) noexcept : fd(o.fd), size(o.size) { o.fd = -1; }
    InputFile& operator=(InputFile&&) = delete;
    ~InputFile() {
        if (fd >= 0) ::close(fd);
    }
};

Error cannot(std::string_view what, const std::filesystem::path& path) {
    return {Errc::io, {path.string()}, fmt::format("cannot {}: {}", what, std::strerror(errno))};
}

Result<InputFile> open_regular(const std::filesystem::path& path) {
    InputFile file;
    // O_NONBLOCK matters for a named pipe alone: opening one must be refused, not waited for.
    file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file.fd < 0) return cannot("open", path);
    struct stat st {};
    if (::fstat(file.fd, &st) != 0) return cannot("read the size", path);
    if (!S_ISREG(st.st_mode))
        return Error(Errc::io, {path.string()},
                     fmt::format("found {}, needed a regular file",
                                 S_ISDIR(st.st_mode) ? "a folder" : "a special file"));
    file.size = static_cast<size_t>(st.st_size);
    return file;
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
    auto file = open_regular(path);
    if (!file) return file.error();
    std::shared_ptr<MappedFile> mapped(new MappedFile);
    if (file->size > 0) {
        void* data = ::mmap(nullptr, file->size, PROT_READ, MAP_PRIVATE, file->fd, 0);
        if (data == MAP_FAILED)
            return cannot(fmt::format("map its {} bytes into memory", file->size), path);
        mapped->data_ = static_cast<const std::byte*>(data);
        mapped->size_ = file->size;
    }
    return std::shared_ptr<const MappedFile>(std::move(mapped));
}

std::shared_ptr<const MappedFile> MappedFile::in_memory(
    size_t bytes, const std::function<void(std::byte*)>& fill) {
    std::shared_ptr<MappedFile> mapped(new MappedFile);
    if (bytes == 0) return mapped;
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        throw Error(Errc::out_of_memory, {},
                    fmt::format("cannot have {} bytes: {}", bytes, std::strerror(errno)));
    mapped->data_ = static_cast<const std::byte*>(data);
    mapped->size_ = bytes;
    fill(static_cast<std::byte*>(data));
    return mapped;
}

MappedFile::~MappedFile() {
    if (size_ > 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::string> read_file(const std::filesystem::path& path, size_t limit) {
    auto file = open_regular(path);
    if (!file) return file.error();
    if (file->size > limit)
        return Error(Errc::invalid_file, {path.string()},
                     fmt::format("found {} bytes, needed at most {}", file->size, limit));
    std::string text(file->size, '\0');
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t n = ::read(file->fd, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cannot("read", path);
        if (n == 0) break;  // the file shrank meanwhile: what is left is all there is
        done += static_cast<size_t>(n);
    }
    text.resize(done);
    return text;
}

void write_file(const std::filesystem::path& path, std::string_view text) {
    OutputFile out(path);
    out.write(text.data(), text.size());
    out.commit();
}

}  // namespace exl3
