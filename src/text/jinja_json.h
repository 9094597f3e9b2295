#pragma once
#include <optional>
#include <string>

#include "text/jinja_call.h"

namespace exl3::jinja {

/// The parameters of Python's json.dumps.
struct JsonStyle {
    bool ensure_ascii = false;
    bool sort_keys = false;
    std::optional<std::string> indent;  ///< for each level; absent: everything on one line
    std::string item_separator = ", ";
    std::string key_separator = ": ";
};

/// Fails for values that JSON has no word for, undefined ones included.
std::string to_json(Runtime& rt, const Value& v, const JsonStyle& style);

Value filter_tojson(Runtime& rt, const Value& self, const Args& args);

}  // namespace exl3::jinja
