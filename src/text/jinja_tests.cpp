// Tests: what may follow `is`.
#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

template <bool (*holds)(const Value&)>
Value about(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "test", args, "");
    return Value::boolean(holds(self));
}

bool is_boolean(const Value& v) {
    return v.is(Kind::boolean);
}
bool is_true(const Value& v) {
    return v.is(Kind::boolean) && v.as_bool();
}
bool is_false(const Value& v) {
    return v.is(Kind::boolean) && !v.as_bool();
}
bool is_integer(const Value& v) {
    return v.is_int() && !v.is(Kind::boolean);
}
bool is_float(const Value& v) {
    return v.is(Kind::real);
}
bool is_number(const Value& v) {
    return v.is_number();
}
bool is_string(const Value& v) {
    return v.is_string();
}
bool is_mapping(const Value& v) {
    return v.is(Kind::dict);
}
bool is_none(const Value& v) {
    return v.is_none();
}
bool is_defined(const Value& v) {
    return !v.is_undefined();
}
bool is_undefined(const Value& v) {
    return v.is_undefined();
}
bool is_escaped(const Value& v) {
    return v.is_string() && v.as<String>().markup;
}
bool is_iterable_or_loop(const Value& v) {
    return is_iterable(v) || v.is(Kind::loop);
}
bool is_sequence(const Value& v) {
    return v.is_undefined() || v.is_string() || v.is_sequence() || v.is(Kind::dict) ||
           v.is(Kind::range);
}
bool is_callable(const Value& v) {
    return v.is_undefined() || v.is(Kind::function) || v.is(Kind::method) || v.is(Kind::macro) ||
           v.is(Kind::loop) || v.is(Kind::joiner);
}

template <CompareOp op>
Value compares(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "test", args, "/other");
    return Value::boolean(compare(rt, op, self, b[0]));
}

template <bool wanted>
Value parity(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "test", args, "");
    const Value rest = binary(rt, BinaryOp::mod, self, Value::integer(2));
    return Value::boolean(equals(rt, rest, Value::integer(wanted)));
}

Value divisibleby(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "divisibleby", args, "num");
    return Value::boolean(equals(rt, binary(rt, BinaryOp::mod, self, b[0]), Value::integer(0)));
}

// str(value).islower() and isupper()
Value letter_case(Runtime& rt, const Value& self, const char* method) {
    return find_method(Kind::string, method)->call(rt, rt.string(to_text(rt, self)), {});
}
Value is_lower_text(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "lower", args, "");
    return letter_case(rt, self, "islower");
}
Value is_upper_text(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "upper", args, "");
    return letter_case(rt, self, "isupper");
}

Value sameas(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "sameas", args, "other");
    return Value::boolean(identical(self, b[0]));
}

Value in(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "in", args, "seq");
    return Value::boolean(contains(rt, b[0], self));
}

Value is_filter(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "filter", args, "");
    hash_of(rt, self);  // fails for what can be no name
    return Value::boolean(self.is_string() && find_filter(self.as_text()));
}
Value is_test(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "test", args, "");
    hash_of(rt, self);
    return Value::boolean(self.is_string() && find_test(self.as_text()));
}

}  // namespace

const BuiltinEntry* find_test(std::string_view name) {
    static constexpr BuiltinEntry kTable[] = {
        {"!=", compares<CompareOp::ne>},
        {"<", compares<CompareOp::lt>},
        {"<=", compares<CompareOp::le>},
        {"==", compares<CompareOp::eq>},
        {">", compares<CompareOp::gt>},
        {">=", compares<CompareOp::ge>},
        {"boolean", about<is_boolean>},
        {"callable", about<is_callable>},
        {"defined", about<is_defined>},
        {"divisibleby", divisibleby},
        {"eq", compares<CompareOp::eq>},
        {"equalto", compares<CompareOp::eq>},
        {"escaped", about<is_escaped>},
        {"even", parity<false>},
        {"false", about<is_false>},
        {"filter", is_filter},
        {"float", about<is_float>},
        {"ge", compares<CompareOp::ge>},
        {"greaterthan", compares<CompareOp::gt>},
        {"gt", compares<CompareOp::gt>},
        {"in", in},
        {"integer", about<is_integer>},
        {"iterable", about<is_iterable_or_loop>},
        {"le", compares<CompareOp::le>},
        {"lessthan", compares<CompareOp::lt>},
        {"lower", is_lower_text},
        {"lt", compares<CompareOp::lt>},
        {"mapping", about<is_mapping>},
        {"ne", compares<CompareOp::ne>},
        {"none", about<is_none>},
        {"number", about<is_number>},
        {"odd", parity<true>},
        {"sameas", sameas},
        {"sequence", about<is_sequence>},
        {"string", about<is_string>},
        {"test", is_test},
        {"true", about<is_true>},
        {"undefined", about<is_undefined>},
        {"upper", is_upper_text},
    };
    return find_entry(kTable, name);
}

}  // namespace exl3::jinja
