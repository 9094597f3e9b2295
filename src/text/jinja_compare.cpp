#include <fmt/format.h>

#include <cmath>

#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace exl3::jinja {
namespace {

// Compares exactly: a double beside an int of more than 53 bits is not rounded to it.
int compare_int_real(Int i, double d) {
    if (d >= 0x1p126) return -1;
    if (d <= -0x1p126) return 1;
    const double whole = std::floor(d);
    const auto w = static_cast<Int>(whole);
    if (i != w) return i < w ? -1 : 1;
    return d > whole ? -1 : 0;
}

enum class Order { less, equal, greater, unordered };

Order order_of(int c) {
    return c < 0 ? Order::less : c > 0 ? Order::greater : Order::equal;
}

Order order_numbers(const Value& a, const Value& b) {
    if (a.is_int() && b.is_int()) {
        const Int x = a.as_int(), y = b.as_int();
        return x < y ? Order::less : x > y ? Order::greater : Order::equal;
    }
    const double x = a.as_double(), y = b.as_double();
    if (std::isnan(x) || std::isnan(y)) return Order::unordered;
    if (a.is_int()) return order_of(compare_int_real(a.as_int(), y));
    if (b.is_int()) return order_of(-compare_int_real(b.as_int(), x));
    return x < y ? Order::less : x > y ? Order::greater : Order::equal;
}

const char* symbol(CompareOp op) {
    constexpr const char* kSymbols[] = {"==", "!=", "<", "<=", ">", ">=", "in", "not in"};
    return kSymbols[static_cast<int>(op)];
}

bool holds(CompareOp op, Order o) {
    switch (op) {
        case CompareOp::lt: return o == Order::less;
        case CompareOp::le: return o == Order::less || o == Order::equal;
        case CompareOp::gt: return o == Order::greater;
        default: return o == Order::greater || o == Order::equal;
    }
}

// <, <=, > and >=; lists and tuples compare at the first place where they differ.
bool ordered(Runtime& rt, CompareOp op, const Value& a, const Value& b) {
    const Deeper deeper(rt);
    rt.step();
    if (a.is_number() && b.is_number()) return holds(op, order_numbers(a, b));
    if (a.is_string() && b.is_string()) {
        // UTF-8 sorts as its code points do.
        const std::string_view x = a.as_text(), y = b.as_text();
        rt.work(std::min(x.size(), y.size()));
        return holds(op, order_of(x.compare(y)));
    }
    if (a.is_sequence() && a.kind() == b.kind()) {
        const auto &x = a.as<Sequence>().items, &y = b.as<Sequence>().items;
        const size_t n = std::min(x.size(), y.size());
        for (size_t i = 0; i < n; ++i)
            if (!identical(x[i], y[i]) && !equals(rt, x[i], y[i]))
                return ordered(rt, op, x[i], y[i]);
        return holds(op, x.size() < y.size()   ? Order::less
                         : x.size() > y.size() ? Order::greater
                                               : Order::equal);
    }
    if (a.is_undefined()) fail_undefined(rt, a);
    if (b.is_undefined()) fail_undefined(rt, b);
    rt.fail(Fault::type, fmt::format("'{}' not supported between instances of '{}' and '{}'",
                                     symbol(op), type_name(a), type_name(b)));
}

bool equal_sequences(Runtime& rt, const std::vector<Value>& a, const std::vector<Value>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
        if (!identical(a[i], b[i]) && !equals(rt, a[i], b[i])) return false;
    return true;
}

bool equal_dicts(Runtime& rt, const Dict& a, const Dict& b) {
    if (a.size() != b.size()) return false;
    for (const Dict::Entry& e : a.entries()) {
        const Value* other = b.find(rt, e.key);
        if (!other || (!identical(e.value, *other) && !equals(rt, e.value, *other))) return false;
    }
    return true;
}

bool equal_ranges(const Range& a, const Range& b) {
    const int64_t n = a.length();
    if (n != b.length()) return false;
    return n == 0 || (a.start == b.start && (n == 1 || a.step == b.step));
}

// keys() and items() compare as sets, values() by identity.
bool equal_views(Runtime& rt, const Value& a, const Value& b) {
    const auto &x = a.as<DictView>(), &y = b.as<DictView>();
    if (x.part == DictView::Part::values || y.part == DictView::Part::values) return false;
    if (length_of(rt, a) != length_of(rt, b)) return false;
    Cursor cursor(rt, a);
    for (Value item; cursor.next(item);)
        if (!contains(rt, b, item)) return false;
    return true;
}

bool in_view(Runtime& rt, const DictView& view, const Value& item) {
    const auto& dict = view.dict.as<Dict>();
    if (view.part == DictView::Part::keys) return dict.find(rt, item) != nullptr;
    if (view.part == DictView::Part::items) {
        if (!item.is(Kind::tuple) || item.as<Sequence>().items.size() != 2) return false;
        const Value* value = dict.find(rt, item.as<Sequence>().items[0]);
        return value && equals(rt, *value, item.as<Sequence>().items[1]);
    }
    for (const Dict::Entry& e : dict.entries())
        if (identical(e.value, item) || equals(rt, e.value, item)) return true;
    return false;
}

}  // namespace

bool truthy(Runtime& rt, const Value& v) {
    switch (v.kind()) {
        case Kind::missing:
        case Kind::none:
        case Kind::undefined: return false;
        case Kind::boolean:
        case Kind::integer: return v.as_integer() != 0;
        case Kind::real: return v.as_real() != 0;
        case Kind::string: return !v.as_text().empty();
        case Kind::list:
        case Kind::tuple: return !v.as<Sequence>().items.empty();
        case Kind::dict:
        case Kind::dict_view:
        case Kind::range: return length_of(rt, v) != 0;
        default: return true;
    }
}

bool identical(const Value& a, const Value& b) {
    if (a.kind() != b.kind()) return false;
    if (a.is_none()) return true;
    if (a.is_object()) return a.object() == b.object();
    return a.is(Kind::real) ? a.as_real() == b.as_real() : a.as_integer() == b.as_integer();
}

bool equals(Runtime& rt, const Value& a, const Value& b) {
    const Deeper deeper(rt);
    rt.step();
    if (a.is_number() && b.is_number()) return order_numbers(a, b) == Order::equal;
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
        case Kind::none:
        case Kind::undefined: return true;
        case Kind::string: {
            const std::string_view x = a.as_text(), y = b.as_text();
            if (x.size() != y.size()) return false;
            rt.work(x.size());
            return x == y;
        }
        case Kind::list:
        case Kind::tuple:
            return equal_sequences(rt, a.as<Sequence>().items, b.as<Sequence>().items);
        case Kind::dict: return equal_dicts(rt, a.as<Dict>(), b.as<Dict>());
        case Kind::range: return equal_ranges(a.as<Range>(), b.as<Range>());
        case Kind::dict_view: return equal_views(rt, a, b);
        case Kind::function: return a.as<Function>().entry == b.as<Function>().entry;
        case Kind::method:
            return a.as<Method>().entry == b.as<Method>().entry &&
                   identical(a.as<Method>().self, b.as<Method>().self);
        default: return a.object() == b.object();
    }
}

bool less(Runtime& rt, const Value& a, const Value& b) {
    return ordered(rt, CompareOp::lt, a, b);
}

bool compare(Runtime& rt, CompareOp op, const Value& a, const Value& b) {
    switch (op) {
        case CompareOp::eq: return equals(rt, a, b);
        case CompareOp::ne: return !equals(rt, a, b);
        case CompareOp::in: return contains(rt, b, a);
        case CompareOp::not_in: return !contains(rt, b, a);
        default: return ordered(rt, op, a, b);
    }
}

bool contains(Runtime& rt, const Value& container, const Value& item) {
    rt.step();
    switch (container.kind()) {
        case Kind::string: {
            if (!item.is_string())
                rt.fail(Fault::type,
                        fmt::format("'in <string>' requires string as left operand, not {}",
                                    type_name(item)));
            rt.work(container.as_text().size());
            return find_text(container.as_text(), item.as_text()) != std::string_view::npos;
        }
        case Kind::dict: return container.as<Dict>().find(rt, item) != nullptr;
        case Kind::dict_view: return in_view(rt, container.as<DictView>(), item);
        case Kind::list:
        case Kind::tuple:
        case Kind::range:
        case Kind::undefined:
        case Kind::iterator: {
            Cursor cursor(rt, container);
            for (Value v; cursor.next(v);)
                if (identical(v, item) || equals(rt, v, item)) return true;
            return false;
        }
        default:
            rt.fail(Fault::type,
                    fmt::format("argument of type '{}' is not iterable", type_name(container)));
    }
}

size_t length_of(Runtime& rt, const Value& v) {
    switch (v.kind()) {
        case Kind::undefined: return 0;
        case Kind::string: return v.as<String>().length;
        case Kind::list:
        case Kind::tuple: return v.as<Sequence>().items.size();
        case Kind::dict: return v.as<Dict>().size();
        case Kind::dict_view: return v.as<DictView>().dict.as<Dict>().size();
        case Kind::range: return static_cast<size_t>(v.as<Range>().length());
        case Kind::loop: return loop_length(rt, v);
        default:
            rt.fail(Fault::type, fmt::format("object of type '{}' has no len()", type_name(v)));
    }
}

}  // namespace exl3::jinja
