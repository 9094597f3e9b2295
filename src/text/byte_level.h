#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace exl3::text {

/// GPT-2's printable stand-ins: printable Latin-1 bytes are themselves, the 68 others (control
/// characters, space, DEL, NBSP, soft hyphen) are U+0100 upwards in order.
char32_t stand_in(uint8_t byte);

/// Each byte as its stand-in.
void append_stand_ins(std::string& out, std::string_view bytes);

/// The bytes that stand-ins mean; empty if some character is none.
std::optional<std::string> bytes_of_stand_ins(std::string_view text);

}  // namespace exl3::text
