#include "text/byte_level.h"

#include <array>

#include "text/unicode.h"

namespace exl3::text {
namespace {

struct Tables {
    std::array<char32_t, 256> of_byte{};
    std::array<int16_t, 512> to_byte{};
    std::array<std::string, 256> text;
    Tables() {
        to_byte.fill(-1);
        char32_t next = 0x100;
        for (uint32_t b = 0; b < 256; ++b) {
            const bool printable =
                (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
            of_byte[b] = printable ? static_cast<char32_t>(b) : next++;
            to_byte[of_byte[b]] = static_cast<int16_t>(b);
            append_utf8(text[b], of_byte[b]);
        }
    }
};

const Tables& tables() {
    static const Tables t;
    return t;
}

}  // namespace

char32_t stand_in(uint8_t byte) {
    return tables().of_byte[byte];
}

void append_stand_ins(std::string& out, std::string_view bytes) {
    const Tables& t = tables();
    for (const char c : bytes) out += t.text[static_cast<uint8_t>(c)];
}

std::optional<std::string> bytes_of_stand_ins(std::string_view text) {
    const Tables& t = tables();
    std::string bytes;
    for (size_t i = 0; i < text.size();) {
        const char32_t c = next_code_point(text, i);
        if (c >= t.to_byte.size() || t.to_byte[c] < 0) return std::nullopt;
        bytes += static_cast<char>(t.to_byte[c]);
    }
    return bytes;
}

}  // namespace exl3::text
