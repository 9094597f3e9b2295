#pragma once
#include <cstdint>
#include <string_view>

namespace exl3 {

/// FNV-1a, 64 bits. For seeds and tables, not against an adversary.
constexpr uint64_t fnv1a64(std::string_view text, uint64_t h = 0xcbf29ce484222325u) {
    for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    return h;
}

}  // namespace exl3
