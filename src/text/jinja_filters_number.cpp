// Filters for numbers.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "text/jinja_call.h"
#include "text/jinja_format.h"
#include "text/jinja_ops.h"

namespace exl3::jinja {
namespace {

Value abs(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "abs", args, "/");
    if (self.is(Kind::real)) return Value::real(std::abs(self.as_real()));
    if (self.is_int()) return self.as_int() < 0 ? negative(rt, self) : positive(rt, self);
    if (self.is_undefined()) fail_undefined(rt, self);
    rt.fail(Fault::type, fmt::format("bad operand type for abs(): '{}'", type_name(self)));
}

Int whole(Runtime& rt, double d) {
    if (std::isnan(d)) rt.fail(Fault::value, "cannot convert float NaN to integer");
    if (std::isinf(d)) rt.fail(Fault::overflow, "cannot convert float infinity to integer");
    if (std::abs(d) >= 0x1p126) rt.fail(Fault::overflow, "the integer has more than 127 bits");
    return static_cast<Int>(d);
}

// What float() makes of a value; false where it raises TypeError or ValueError.
bool to_real(Runtime& rt, const Value& v, double& out) {
    if (v.is_undefined()) fail_undefined(rt, v);
    if (v.is_string()) return parse_real(v.as_text(), out);
    if (!v.is_number()) return false;
    out = v.as_double();
    return true;
}

Value to_float(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "float", args, "default?");
    double d = 0;
    if (to_real(rt, self, d)) return Value::real(d);
    return b[0].missing() ? Value::real(0) : b[0];
}

Value to_int(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "int", args, "default? base?");
    const Int base = b.integer(rt, 1, 10);
    const bool base_known = base == 0 || (base >= 2 && base <= 36);
    Int i = 0;
    if (self.is_int()) return rt.integer(self.as_int());
    if (self.is_string() && base_known) {
        const Parsed parsed = parse_int(self.as_text(), static_cast<int>(base), i);
        if (parsed == Parsed::too_big)
            rt.fail(Fault::overflow, "the integer has more than 127 bits");
        if (parsed == Parsed::yes) return rt.integer(i);
    }
    // "42.23" is an int for this filter.
    double d = 0;
    if (to_real(rt, self, d) && !std::isnan(d)) return rt.integer(whole(rt, d));
    return b[0].missing() ? Value::integer(0) : b[0];
}

// The multiple of 10^-precision next to d, ties to even, decided on the exact value of d.
double rounded(double d, Int precision) {
    if (!std::isfinite(d) || precision > 323) return d;
    if (precision < -308) return std::copysign(0.0, d);
    if (precision >= 0) {
        char buffer[800];
        const auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::fixed,
                                       static_cast<int>(precision))
                             .ptr;
        double out = 0;
        std::from_chars(buffer, end, out);
        return out;
    }
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    const double scaled = std::nearbyint(d / unit);
    return scaled * unit;
}

Int rounded_int(Runtime& rt, Int i, Int precision) {
    if (precision >= 0) return i;
    if (precision < -38) return 0;
    Int unit = 1;
    for (Int n = precision; n < 0; ++n)
        if (__builtin_mul_overflow(unit, Int{10}, &unit)) return 0;
    Int quotient = i / unit, rest = i % unit;
    if (rest < 0) {
        rest += unit;
        --quotient;
    }
    if (rest > unit - rest || (rest == unit - rest && (quotient & 1))) ++quotient;
    Int result = 0;
    if (__builtin_mul_overflow(quotient, unit, &result))
        rt.fail(Fault::overflow, "the integer has more than 127 bits");
    return result;
}

Value round(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "round", args, "precision? method?");
    const std::string method = b[1].missing() ? "common" : to_text(rt, b[1]);
    if (method != "common" && method != "ceil" && method != "floor")
        rt.fail(Fault::value, "method must be common, ceil or floor");
    if (self.is_undefined()) fail_undefined(rt, self);
    if (!self.is_number())
        rt.fail(Fault::type,
                fmt::format("type {} doesn't define __round__ method", type_name(self)));
    if (method == "common") {
        if (b[0].is_none()) return rt.integer(whole(rt, std::nearbyint(self.as_double())));
        const Int precision = b.integer(rt, 0, 0);
        if (self.is_int()) return rt.integer(rounded_int(rt, self.as_int(), precision));
        return Value::real(rounded(self.as_real(), precision));
    }
    // func(value * 10 ** precision) / 10 ** precision, in Python's arithmetic
    const Value power =
        binary(rt, BinaryOp::pow, Value::integer(10), b[0].missing() ? Value::integer(0) : b[0]);
    const Value scaled = binary(rt, BinaryOp::mul, self, power);
    const double d = scaled.as_double();
    const Value result =
        scaled.is_int() ? scaled
                        : rt.integer(whole(rt, method == "ceil" ? std::ceil(d) : std::floor(d)));
    return binary(rt, BinaryOp::div, result, power);
}

Value filesizeformat(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "filesizeformat", args, "binary?");
    double bytes = 0;
    if (!to_real(rt, self, bytes))
        rt.fail(Fault::type, fmt::format("filesizeformat needs a number, not {}", type_name(self)));
    const bool binary_units = b.flag(rt, 0);
    const double base = binary_units ? 1024 : 1000;
    if (bytes == 1) return rt.string("1 Byte");
    if (bytes < base) return rt.string(decimal(whole(rt, bytes)) + " Bytes");
    const std::string_view prefixes = "kMGTPEZY";
    double unit = base * base;
    size_t i = 0;
    for (; i + 1 < prefixes.size() && !(bytes < unit); ++i) unit *= base;
    std::string name(1, prefixes[i]);
    if (binary_units) name = (i == 0 ? "K" : name) + "i";
    return rt.string(format_value(rt, Value::real(base * bytes / unit), ".1f") + ' ' + name + 'B');
}

}  // namespace

std::span<const BuiltinEntry> number_filters() {
    static constexpr BuiltinEntry kTable[] = {
        {"abs", abs},     {"filesizeformat", filesizeformat}, {"float", to_float}, {"int", to_int},
        {"round", round},
    };
    return kTable;
}

}  // namespace exl3::jinja
