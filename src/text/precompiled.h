#pragma once
#include <memory>

#include "text/json_reader.h"
#include "text/normalize.h"

namespace exl3::text {

/// SentencePiece's compiled character map ("precompiled_charsmap", base64): a double-array trie of
/// byte strings and the replacements they lead to. Throws Error{invalid_file} for a damaged one.
std::unique_ptr<Normalizer> load_precompiled(const JsonNode& node);

/// The same from the decoded bytes; `describe` names the place in errors. Null for an empty map.
std::unique_ptr<Normalizer> make_precompiled(std::string bytes, const std::string& file);

}  // namespace exl3::text
