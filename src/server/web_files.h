#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace exl3::server {

/// A file of the chat page, part of the program.
struct WebFile {
    std::string_view name;  ///< "index.html"
    const unsigned char* bytes;
    size_t size;
};
/// All of web/; the source is made by cmake/EmbedFiles.cmake.
std::span<const WebFile> web_files();

}  // namespace exl3::server
