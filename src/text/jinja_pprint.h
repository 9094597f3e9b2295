#pragma once
#include <string>

#include "text/jinja_runtime.h"

namespace exl3::jinja {

/// Python's pprint.pformat: repr() in lines of at most 80 columns, dicts sorted by key.
std::string pretty(Runtime& rt, const Value& v);

}  // namespace exl3::jinja
