#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace exl3 {

/// Keys keep the order of the file: converted configs should read like their sources.
using Json = nlohmann::ordered_json;

/// Strict JSON in UTF-8, at most 512 levels deep, no duplicate keys in one object, no number beyond
/// the range of a double. Integers that need more than 64 bits become doubles. The error names
/// `file` and the byte. Never throws on bad input.
/// @param key_offsets  if given, receives the byte at which each key of the outermost object
/// starts,
///                     in order, so that errors about an entry can name its place
/// @param base         where `text` starts in the file; added to every offset
Result<Json> parse_json(std::string_view text, const std::string& file,
                        std::vector<uint64_t>* key_offsets = nullptr, uint64_t base = 0);

}  // namespace exl3
