#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace exl3 {

/// Keys keep the order of the file: converted configs should read like their sources.
using Json = nlohmann::ordered_json;

/// Strict JSON, at most 512 levels deep, no duplicate keys in one object. The error names `file`
/// and the byte. Never throws on bad input.
Result<Json> parse_json(std::string_view text, const std::string& file);

}  // namespace exl3
