#pragma once
#include <filesystem>

namespace exl3 {

/// A folder that appears whole or not at all: files are put into path(), a partial folder beside
/// the final one, and commit() renames it. Destroyed before commit(), it goes away.
class OutputFolder {
public:
    /// Throws Error{invalid_argument} if `final` exists and is not an empty folder, Error{io} if
    /// the partial folder cannot be made. One that an earlier run left is emptied.
    explicit OutputFolder(std::filesystem::path final);
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;
    ~OutputFolder();

    const std::filesystem::path& path() const { return partial_; }
    /// Throws Error{io}; then nothing is left behind.
    void commit();

private:
    std::filesystem::path final_, partial_;
    bool done_ = false;
};

}  // namespace exl3
