#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace exl3 {

/// Which tokens may be drawn: one bit per token, packed into 32-bit words, lowest bit first; a set
/// bit allows the token. Tokens past the last word are forbidden, so an empty mask allows nothing.
struct TokenMask {
    std::vector<uint32_t> words;

    TokenMask() = default;
    /// A mask of `tokens` bits, all set or all clear; the spare bits of the last word are clear.
    explicit TokenMask(int tokens, bool allow = false)
        : words((static_cast<size_t>(tokens) + 31) / 32, allow ? ~0u : 0u) {
        if (allow && tokens % 32 != 0) words.back() = (1u << (tokens % 32)) - 1;
    }

    bool allows(int32_t token) const {
        const size_t word = static_cast<uint32_t>(token) / 32;
        return word < words.size() && (words[word] >> (static_cast<uint32_t>(token) % 32) & 1u);
    }
    /// Allows or forbids one token, which must lie inside the mask.
    void set(int32_t token, bool allow = true) {
        const uint32_t bit = 1u << (static_cast<uint32_t>(token) % 32);
        uint32_t& word = words[static_cast<uint32_t>(token) / 32];
        word = allow ? word | bit : word & ~bit;
    }
    /// Keeps what both masks allow; the shorter one forbids the rest.
    void intersect(const TokenMask& other) {
        if (words.size() > other.words.size()) words.resize(other.words.size());
        for (size_t i = 0; i < words.size(); ++i) words[i] &= other.words[i];
    }
    bool none() const {
        for (const uint32_t w : words)
            if (w) return false;
        return true;
    }
};

}  // namespace exl3
