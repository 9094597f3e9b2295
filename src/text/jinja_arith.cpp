#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "text/jinja_format.h"
#include "text/jinja_ops.h"

namespace exl3::jinja {
namespace {

const char* symbol(BinaryOp op) {
    constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
    return kSymbols[static_cast<int>(op)];
}

[[noreturn]] void too_big(Runtime& rt) {
    rt.fail(Fault::overflow, "the integer has more than 127 bits");
}

[[noreturn]] void zero_division(Runtime& rt, const char* message) {
    rt.fail(Fault::zero_division, message);
}

Int floor_div(Int a, Int b) {
    const Int q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

Value int_power(Runtime& rt, Int base, Int exponent) {
    if (exponent < 0) {
        if (base == 0) zero_division(rt, "0.0 cannot be raised to a negative power");
        return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
    Int result = 1;
    while (exponent > 0) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) too_big(rt);
        exponent >>= 1;
        // Past the last bit the square is not needed, so its overflow is no error.
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) too_big(rt);
    }
    return rt.integer(result);
}

Value int_binary(Runtime& rt, BinaryOp op, Int a, Int b) {
    Int result = 0;
    bool overflow = false;
    switch (op) {
        case BinaryOp::add: overflow = __builtin_add_overflow(a, b, &result); break;
        case BinaryOp::sub: overflow = __builtin_sub_overflow(a, b, &result); break;
        case BinaryOp::mul: overflow = __builtin_mul_overflow(a, b, &result); break;
        case BinaryOp::div:
            if (b == 0) zero_division(rt, "division by zero");
            return Value::real(static_cast<double>(a) / static_cast<double>(b));
        case BinaryOp::floordiv:
            if (b == 0) zero_division(rt, "integer division or modulo by zero");
            if (b == -1) return int_binary(rt, BinaryOp::sub, 0, a);  // the quotient may overflow
            result = floor_div(a, b);
            break;
        case BinaryOp::mod:
            if (b == 0) zero_division(rt, "integer modulo by zero");
            if (b == -1) return Value::integer(0);
            result = a - floor_div(a, b) * b;
            break;
        case BinaryOp::pow: return int_power(rt, a, b);
    }
    if (overflow) too_big(rt);
    return rt.integer(result);
}

// Python's float modulo has the sign of the divisor.
double real_mod(double a, double b) {
    double m = std::fmod(a, b);
    if (m == 0) return std::copysign(0.0, b);
    if ((m < 0) != (b < 0)) m += b;
    return m;
}

double real_floor_div(double a, double b) {
    double m = std::fmod(a, b);
    double q = (a - m) / b;
    if (m != 0 && (m < 0) != (b < 0)) q -= 1;
    if (q == 0) return std::copysign(0.0, a / b);
    double whole = std::floor(q);
    if (q - whole > 0.5) whole += 1;
    return whole;
}

double real_power(Runtime& rt, double a, double b) {
    if (a == 0 && b < 0) zero_division(rt, "0.0 cannot be raised to a negative power");
    if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
        rt.fail(Fault::unsupported, "a negative number to a fractional power is complex");
    const double result = std::pow(a, b);
    if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
        rt.fail(Fault::overflow, "(34, 'Numerical result out of range')");
    return result;
}

Value real_binary(Runtime& rt, BinaryOp op, double a, double b) {
    switch (op) {
        case BinaryOp::add: return Value::real(a + b);
        case BinaryOp::sub: return Value::real(a - b);
        case BinaryOp::mul: return Value::real(a * b);
        case BinaryOp::div:
            if (b == 0) zero_division(rt, "float division by zero");
            return Value::real(a / b);
        case BinaryOp::floordiv:
            if (b == 0) zero_division(rt, "float floor division by zero");
            return Value::real(real_floor_div(a, b));
        case BinaryOp::mod:
            if (b == 0) zero_division(rt, "float modulo");
            return Value::real(real_mod(a, b));
        case BinaryOp::pow: return Value::real(real_power(rt, a, b));
    }
    return {};
}

// 'ab' * 3, [0] * 3, and the same the other way round.
Value repeat(Runtime& rt, const Value& what, Int times) {
    if (times < 0) times = 0;
    if (times > std::numeric_limits<int64_t>::max())
        rt.fail(Fault::overflow, "cannot fit 'int' into an index-sized integer");
    if (what.is_string()) {
        const auto& s = what.as<String>();
        rt.check_size(static_cast<Int>(s.text.size()) * times);
        std::string out;
        if (!s.text.empty()) {
            out.reserve(s.text.size() * static_cast<size_t>(times));
            for (Int i = 0; i < times; ++i) out += s.text;
        }
        return rt.string(std::move(out), s.markup);
    }
    const auto& items = what.as<Sequence>().items;
    std::vector<Value> out;
    if (!items.empty()) {
        rt.check_size(static_cast<Int>(items.size() * sizeof(Value)) * times);
        out.reserve(items.size() * static_cast<size_t>(times));
        for (Int i = 0; i < times; ++i) out.insert(out.end(), items.begin(), items.end());
    }
    return what.is(Kind::list) ? rt.list(std::move(out)) : rt.tuple(std::move(out));
}

Value join_texts(Runtime& rt, const Value& a, const Value& b) {
    const bool markup = a.as<String>().markup || b.as<String>().markup;
    const Value left = markup ? escape_html(rt, a) : a, right = markup ? escape_html(rt, b) : b;
    rt.check_size(Int(left.as_text().size()) + Int(right.as_text().size()));
    std::string out;
    out.reserve(left.as_text().size() + right.as_text().size());
    out += left.as_text();
    out += right.as_text();
    return rt.string(std::move(out), markup);
}

Value join_sequences(Runtime& rt, const Value& a, const Value& b) {
    const auto &x = a.as<Sequence>().items, &y = b.as<Sequence>().items;
    rt.check_size((Int(x.size()) + Int(y.size())) * Int(sizeof(Value)));
    std::vector<Value> out;
    out.reserve(x.size() + y.size());
    out.insert(out.end(), x.begin(), x.end());
    out.insert(out.end(), y.begin(), y.end());
    return a.is(Kind::list) ? rt.list(std::move(out)) : rt.tuple(std::move(out));
}

[[noreturn]] void unsupported(Runtime& rt, BinaryOp op, const Value& a, const Value& b) {
    if (op == BinaryOp::add && a.is_string())
        rt.fail(Fault::type,
                fmt::format("can only concatenate str (not \"{}\") to str", type_name(b)));
    if (op == BinaryOp::add && a.is_sequence())
        rt.fail(Fault::type, fmt::format("can only concatenate {0} (not \"{1}\") to {0}",
                                         type_name(a), type_name(b)));
    if (op == BinaryOp::mul && (a.is_string() || a.is_sequence()))
        rt.fail(Fault::type,
                fmt::format("can't multiply sequence by non-int of type '{}'", type_name(b)));
    rt.fail(Fault::type, fmt::format("unsupported operand type(s) for {}: '{}' and '{}'",
                                     symbol(op), type_name(a), type_name(b)));
}

}  // namespace

Value binary(Runtime& rt, BinaryOp op, const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) {
        if (a.is_int() && b.is_int()) return int_binary(rt, op, a.as_int(), b.as_int());
        return real_binary(rt, op, a.as_double(), b.as_double());
    }
    if (op == BinaryOp::mod && a.is_string()) return format_percent(rt, a, b);
    if (a.is_undefined()) fail_undefined(rt, a);
    if (b.is_undefined()) fail_undefined(rt, b);
    if (op == BinaryOp::add) {
        if (a.is_string() && b.is_string()) return join_texts(rt, a, b);
        if (a.is_sequence() && a.kind() == b.kind()) return join_sequences(rt, a, b);
    }
    if (op == BinaryOp::mul) {
        if ((a.is_string() || a.is_sequence()) && b.is_int()) return repeat(rt, a, b.as_int());
        if ((b.is_string() || b.is_sequence()) && a.is_int()) return repeat(rt, b, a.as_int());
    }
    unsupported(rt, op, a, b);
}

Value negative(Runtime& rt, const Value& v) {
    if (v.is_int()) return int_binary(rt, BinaryOp::sub, 0, v.as_int());
    if (v.is(Kind::real)) return Value::real(-v.as_real());
    if (v.is_undefined()) fail_undefined(rt, v);
    rt.fail(Fault::type, fmt::format("bad operand type for unary -: '{}'", type_name(v)));
}

Value positive(Runtime& rt, const Value& v) {
    if (v.is_int()) return rt.integer(v.as_int());
    if (v.is(Kind::real)) return v;
    if (v.is_undefined()) fail_undefined(rt, v);
    rt.fail(Fault::type, fmt::format("bad operand type for unary +: '{}'", type_name(v)));
}

}  // namespace exl3::jinja
