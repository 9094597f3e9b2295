#pragma once
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace exl3::test {

/// The bytes of a safetensors file with this header, right or wrong, and `data` after it.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
    const uint64_t length = header.size();
    std::string s(sizeof length, '\0');
    std::memcpy(s.data(), &length, sizeof length);
    return s.append(header).append(data);
}

inline std::string read_all(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace exl3::test
