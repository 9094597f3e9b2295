#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

// What every Python object has and the sandbox keeps from templates.
bool is_special_name(std::string_view name) {
    constexpr std::string_view kNames[] = {
        "__class__",   "__delattr__", "__dir__",  "__doc__",           "__eq__",
        "__format__",  "__ge__",      "__gt__",   "__getattribute__",  "__getstate__",
        "__hash__",    "__init__",    "__le__",   "__init_subclass__", "__lt__",
        "__ne__",      "__new__",     "__repr__", "__reduce__",        "__reduce_ex__",
        "__setattr__", "__sizeof__",  "__str__",  "__subclasshook__",
    };
    return name.starts_with("__") &&
           std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Value unsafe(Runtime& rt, const Value& v, const Value& name) {
    return rt.undefined(Undefined::Why::unsafe, type_name(v), name);
}

Value no_attribute(Runtime& rt, const Value& v, const Value& name) {
    return rt.undefined(Undefined::Why::attribute, type_description(v), name);
}

Value number_attribute(const Value& v, std::string_view name) {
    const bool whole = v.is_int();
    if (name == "real") return v.is(Kind::boolean) ? Value::integer(v.as_integer()) : v;
    if (name == "imag") return whole ? Value::integer(0) : Value::real(0);
    if (whole && name == "numerator") return v;
    if (whole && name == "denominator") return Value::integer(1);
    return {};
}

Value range_attribute(const Range& r, std::string_view name) {
    if (name == "start") return Value::integer(r.start);
    if (name == "stop") return Value::integer(r.stop);
    if (name == "step") return Value::integer(r.step);
    return {};
}

// A property: an attribute that is neither a method nor a key.
Value property(Runtime& rt, const Value& v, const Value& name_value) {
    const std::string_view name = name_value.as_text();
    switch (v.kind()) {
        case Kind::boolean:
        case Kind::integer:
        case Kind::wide:
        case Kind::real: return number_attribute(v, name);
        case Kind::range: return range_attribute(v.as<Range>(), name);
        case Kind::tuple: {
            const auto& t = v.as<Sequence>();
            if (t.group && name == "grouper") return t.items[0];
            if (t.group && name == "list") return t.items[1];
            return {};
        }
        case Kind::name_space: {
            const Value* found = v.as<Namespace>().attributes.as<Dict>().find(name);
            if (!found) return {};
            return name.starts_with('_') ? unsafe(rt, v, name_value) : *found;
        }
        case Kind::macro: return v.as<Callable>().attribute(rt, name);
        case Kind::loop: return v.as<LoopObject>().attribute(rt, name);
        case Kind::cycler: {
            const auto& c = v.as<Cycler>();
            if (name == "pos") return rt.integer(c.position);
            if (name == "current") return c.items[c.position];
            if (name == "items") return rt.tuple(c.items);
            return {};
        }
        case Kind::joiner:
            if (name == "sep") return v.as<Joiner>().separator;
            if (name == "used") return Value::boolean(v.as<Joiner>().used);
            return {};
        default: return {};
    }
}

// The element that v[key] is in Python; missing where Python raises TypeError or LookupError.
Value element(Runtime& rt, const Value& v, const Value& key) {
    if (v.is(Kind::dict)) {
        if (key.is(Kind::list) || key.is(Kind::dict) || key.is(Kind::dict_view)) return {};
        const Value* found = v.as<Dict>().find(rt, key);
        return found ? *found : Value();
    }
    const bool indexed = v.is_string() || v.is_sequence() || v.is(Kind::range);
    if (!indexed || !key.is_int()) return {};
    const Int length = static_cast<Int>(length_of(rt, v));
    Int i = key.as_int();
    if (i < 0) i += length;
    if (i < 0 || i >= length) return {};
    return item_at(rt, v, static_cast<size_t>(i));
}

struct Span {
    Int start = 0, stop = 0, step = 1;
    Int count() const {
        if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
        return start > stop ? (start - stop - 1) / -step + 1 : 0;
    }
};

Int slice_part(Runtime& rt, const Value& v, Int otherwise) {
    if (v.missing() || v.is_none()) return otherwise;
    if (v.is_int()) return v.as_int();
    if (v.is_undefined()) fail_undefined(rt, v);
    rt.fail(Fault::type, "slice indices must be integers or None or have an __index__ method");
}

Span resolve_slice(Runtime& rt, Int length, const Value& start, const Value& stop,
                   const Value& step) {
    Span s;
    s.step = slice_part(rt, step, 1);
    if (s.step == 0) rt.fail(Fault::value, "slice step cannot be zero");
    const bool back = s.step < 0;
    const Int low = back ? -1 : 0, high = back ? length - 1 : length;
    const auto bound = [&](const Value& v, Int otherwise) {
        Int i = slice_part(rt, v, otherwise);
        if (v.missing() || v.is_none()) return i;
        if (i < 0) i = i < -length ? -1 : i + length;
        return std::clamp(i, low, std::max(low, high));
    };
    s.start = bound(start, back ? length - 1 : 0);
    s.stop = bound(stop, back ? -1 : length);
    constexpr Int kFar = Int{1} << 80;  // any step beyond the length takes one item
    s.step = std::clamp<Int>(s.step, -kFar, kFar);
    return s;
}

std::string slice_text(const String& s, const Span& span) {
    const Int count = span.count();
    if (count == 0) return {};
    const std::string_view text = s.text;
    const auto start = static_cast<size_t>(span.start);
    if (span.step == 1) {
        if (s.ascii()) return std::string(text.substr(start, static_cast<size_t>(count)));
        const size_t from = offset_of(text, start);
        return std::string(
            text.substr(from, offset_of(text.substr(from), static_cast<size_t>(count))));
    }
    std::string out;
    if (s.ascii()) {
        for (Int i = 0; i < count; ++i)
            out += text[static_cast<size_t>(span.start + i * span.step)];
        return out;
    }
    std::vector<size_t> starts;
    for (size_t at = 0; at < text.size(); next_code_point(text, at)) starts.push_back(at);
    for (Int i = 0; i < count; ++i) {
        size_t at = starts[static_cast<size_t>(span.start + i * span.step)];
        append_utf8(out, next_code_point(text, at));
    }
    return out;
}

}  // namespace

std::string undefined_message(Runtime& rt, const Value& v) {
    const auto& u = v.as<Undefined>();
    switch (u.why) {
        case Undefined::Why::name: return fmt::format("{} is undefined", repr(rt, u.subject));
        case Undefined::Why::hint: return u.owner;
        case Undefined::Why::parameter:
            return fmt::format("parameter {} was not provided", repr(rt, u.subject));
        case Undefined::Why::unsafe:
            return fmt::format("access to attribute {} of '{}' object is unsafe.",
                               repr(rt, u.subject), u.owner);
        case Undefined::Why::element:
            return fmt::format("{} has no element {}", u.owner, repr(rt, u.subject));
        case Undefined::Why::attribute: break;
    }
    return fmt::format("'{}' has no attribute {}", u.owner, repr(rt, u.subject));
}

void fail_undefined(Runtime& rt, const Value& v) {
    const bool unsafe = v.as<Undefined>().why == Undefined::Why::unsafe;
    rt.fail(unsafe ? Fault::security : Fault::undefined, undefined_message(rt, v));
}

Value own_attribute(Runtime& rt, const Value& v, const Value& name) {
    const std::string_view n = name.as_text();
    if (is_special_name(n)) return unsafe(rt, v, name);
    if (v.is_undefined()) fail_undefined(rt, v);
    if (const BuiltinEntry* e = find_method(v.kind(), n)) {
        if (e->changes) return unsafe(rt, v, name);
        return Value::object(Kind::method, rt.heap.make<Method>(0, e, v));
    }
    return property(rt, v, name);
}

Value get_attribute(Runtime& rt, const Value& v, const Value& name) {
    Value found = own_attribute(rt, v, name);
    if (!found.missing()) return found;
    found = element(rt, v, name);
    return found.missing() ? no_attribute(rt, v, name) : found;
}

Value get_item(Runtime& rt, const Value& v, const Value& key) {
    if (v.is_undefined()) fail_undefined(rt, v);
    Value found = element(rt, v, key);
    if (!found.missing()) return found;
    if (key.is_string()) {
        found = own_attribute(rt, v, key);
        return found.missing() ? no_attribute(rt, v, key) : found;
    }
    return rt.undefined(Undefined::Why::element, type_description(v), key);
}

Value item_at(Runtime& rt, const Value& v, size_t i) {
    switch (v.kind()) {
        case Kind::string: {
            const auto& s = v.as<String>();
            if (s.ascii()) return rt.string(s.text.substr(i, 1), s.markup);
            rt.work(i);
            size_t at = offset_of(s.text, i);
            const size_t start = at;
            next_code_point(s.text, at);
            return rt.string(s.text.substr(start, at - start), s.markup);
        }
        case Kind::range: return Value::integer(v.as<Range>().at(static_cast<int64_t>(i)));
        default: return v.as<Sequence>().items[i];
    }
}

Value get_slice(Runtime& rt, const Value& v, const Value& start, const Value& stop,
                const Value& step) {
    if (v.is_undefined()) fail_undefined(rt, v);
    if (v.is(Kind::dict)) rt.fail(Fault::type, "unhashable type: 'slice'");
    if (!v.is_string() && !v.is_sequence() && !v.is(Kind::range))
        rt.fail(Fault::type, fmt::format("'{}' object is not subscriptable", type_name(v)));
    const Span span = resolve_slice(rt, static_cast<Int>(length_of(rt, v)), start, stop, step);
    if (v.is_string()) {
        rt.work(v.as_text().size());
        if (!v.as<String>().ascii()) rt.check_growth(v.as<String>().length, sizeof(size_t));
        return rt.string(slice_text(v.as<String>(), span), v.as<String>().markup);
    }
    if (v.is(Kind::range)) {
        const auto& r = v.as<Range>();
        const auto narrow = [](Int i) {
            constexpr Int kLimit = Int{1} << 62;
            return static_cast<int64_t>(std::clamp<Int>(i, -kLimit, kLimit));
        };
        return Value::object(
            Kind::range,
            rt.heap.make<Range>(0, narrow(r.start + span.start * r.step),
                                narrow(r.start + span.stop * r.step), narrow(r.step * span.step)));
    }
    const Int count = span.count();
    rt.check_size(count * static_cast<Int>(sizeof(Value)));
    std::vector<Value> items;
    items.reserve(static_cast<size_t>(count));
    for (Int i = 0; i < count; ++i)
        items.push_back(v.as<Sequence>().items[static_cast<size_t>(span.start + i * span.step)]);
    return v.is(Kind::list) ? rt.list(std::move(items)) : rt.tuple(std::move(items));
}

}  // namespace exl3::jinja
