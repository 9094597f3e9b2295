#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_reader.h"
#include "text/normalize.h"

namespace exl3::text {

/// SentencePiece's compiled character map: a double-array trie of byte strings, each leading to a
/// replacement in a pool of zero-terminated strings. Layout: u32 bytes of the trie, the trie as u32
/// units, the pool; all little-endian.
class CharMap {
public:
    /// Throws Error{invalid_file} without a place; the caller adds it.
    explicit CharMap(std::string_view bytes);
    struct Hit {
        size_t bytes;  ///< of the key
        std::string_view replacement;
    };
    std::optional<Hit> shortest(std::string_view text) const { return find(text, false); }
    std::optional<Hit> longest(std::string_view text) const { return find(text, true); }

private:
    std::optional<Hit> find(std::string_view text, bool longest) const;
    std::vector<uint32_t> units_;
    std::string pool_;
};

/// "Precompiled" of tokenizer.json, which applies the map by grapheme: one shorter than 6 bytes is
/// replaced as a whole by what its shortest key leads to, others by code point.
std::unique_ptr<Normalizer> load_precompiled(const JsonNode& node);

}  // namespace exl3::text
