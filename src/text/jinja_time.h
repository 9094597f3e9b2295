#pragma once
#include <string>
#include <string_view>

#include "text/jinja.h"

namespace exl3::jinja {

/// strftime in the C locale for a time without a zone: %z and %Z are empty. Unknown directives
/// stay as they are. Field widths are limited to 100.
std::string format_time(std::string_view format, const CivilTime& t);

}  // namespace exl3::jinja
