#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "io/json.h"

namespace exl3::cli {

/// The bytes of a file, or of stdin when `path` is "-". Throws Error naming the file.
std::string read_input(const std::string& path);

/// What errors call `path`: "stdin" for "-".
std::string input_name(const std::string& path);

/// A JSON document from a file or stdin. Throws Error{invalid_file}.
Json read_json_input(const std::string& path);

/// A JSON array of token ids. Throws Error{invalid_file} naming the file and the first entry that
/// is not an integer from 0 to 2^31 - 1.
std::vector<int32_t> read_ids(const std::string& path);
/// The same from a value already parsed; `where` names it.
std::vector<int32_t> ids_of(const Json& value, const std::string& file, const std::string& where);

}  // namespace exl3::cli
