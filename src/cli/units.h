#pragma once
#include <cstdint>
#include <string>

namespace exl3::cli {

/// "1.50 GiB", "17.0 MiB", "512 B".
std::string bytes_text(uint64_t bytes);

/// The last part of a path.
std::string file_name(const std::string& path);

}  // namespace exl3::cli
