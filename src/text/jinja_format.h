#pragma once
#include <string>
#include <string_view>

#include "text/jinja_call.h"

namespace exl3::jinja {

/// How one value is laid out: Python's format specification, which %-formats translate to.
struct FormatSpec {
    std::string fill = " ";  ///< one code point
    char align = 0;          ///< < > ^ =, 0: by type
    char sign = '-';         ///< + - or space
    bool alternate = false;  ///< #
    char group = 0;          ///< , or _
    int width = 0;
    int precision = -1;
    char type = 0;
};

/// "text" % args
Value format_percent(Runtime& rt, const Value& format, const Value& args);
/// "text".format(*args)
Value format_braces(Runtime& rt, const Value& format, const Args& args);
/// format(v, spec)
std::string format_value(Runtime& rt, const Value& v, std::string_view spec);

std::string format_text(Runtime& rt, std::string_view text, const FormatSpec& spec);
/// Types d b o x X c n.
std::string format_int(Runtime& rt, Int i, const FormatSpec& spec);
/// Types e E f F g G n % and none.
std::string format_real(Runtime& rt, double d, const FormatSpec& spec);
/// repr() with everything beyond ASCII escaped.
std::string ascii_repr(Runtime& rt, const Value& v);

}  // namespace exl3::jinja
