#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/json.h"
#include "io/mapped_file.h"

namespace exl3::test {

/// Golden data made by other software, kept outside the repository.
inline std::filesystem::path golden_dir() {
    const char* set = std::getenv("EXL3_GOLDEN");
    return set ? set : EXL3_GOLDEN_DIR;
}
inline std::filesystem::path source_dir() {
    return EXL3_SOURCE_DIR;
}
inline Json load_json(const std::filesystem::path& path) {
    return parse_json(read_file(path).value(), path.string()).value();
}

/// |a - b| / |b| over n numbers.
inline double relative_error(const float* a, const float* b, size_t n) {
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; ++i) {
        diff += std::pow(static_cast<double>(a[i]) - b[i], 2);
        norm += std::pow(static_cast<double>(b[i]), 2);
    }
    return std::sqrt(diff / norm);
}

/// A folder that is removed with its contents.
class TempDir {
public:
    TempDir() {
        std::string name = (std::filesystem::temp_directory_path() / "exl3-test-XXXXXX").string();
        if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
        path_ = name;
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    ~TempDir() {
        std::error_code none;
        std::filesystem::remove_all(path_, none);
    }
    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

}  // namespace exl3::test
