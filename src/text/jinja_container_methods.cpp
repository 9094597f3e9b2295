// Methods of lists, tuples, dicts, ranges, numbers and Jinja's helper objects.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_ops.h"

namespace exl3::jinja {
namespace {

Value dict_get(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "get", args, "/key default?");
    const Value* found = self.as<Dict>().find(rt, b[0]);
    if (found) return *found;
    return b[1].missing() ? Value::none() : b[1];
}

template <DictView::Part part>
Value dict_view(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "dict method", args, "/");
    return Value::object(Kind::dict_view, rt.heap.make<DictView>(0, self, part));
}

Value dict_copy(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "copy", args, "/");
    Value copy = make_dict(rt);
    for (const Dict::Entry& e : self.as<Dict>().entries()) copy.as<Dict>().set(rt, e.key, e.value);
    return copy;
}

Value dict_fromkeys(Runtime& rt, const Value&, const Args& args) {
    const Bound b = bind(rt, "fromkeys", args, "/iterable value?");
    Value made = make_dict(rt);
    Cursor cursor(rt, b[0]);
    for (Value key; cursor.next(key);)
        made.as<Dict>().set(rt, key, b[1].missing() ? Value::none() : b[1]);
    return made;
}

// Only ever refused: the sandbox lets no template change a list or dict.
Value refused(Runtime& rt, const Value&, const Args&) {
    rt.fail(Fault::security, "refused");
}

Value sequence_copy(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "copy", args, "/");
    return make_list(rt, self);
}

Value sequence_count(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "count", args, "/value");
    int64_t n = 0;
    Cursor cursor(rt, self);
    for (Value item; cursor.next(item);) n += identical(item, b[0]) || equals(rt, item, b[0]);
    return Value::integer(n);
}

Value sequence_index(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "index", args, "/value start? stop?");
    const auto length = static_cast<Int>(length_of(rt, self));
    const auto clip = [&](Int i) { return i < 0 ? std::max<Int>(0, i + length) : i; };
    const Int start = clip(b.integer(rt, 1, 0)),
              stop = std::min(clip(b.integer(rt, 2, length)), length);
    for (Int i = start; i < stop; ++i) {
        const Value item = item_at(rt, self, static_cast<size_t>(i));
        if (identical(item, b[0]) || equals(rt, item, b[0])) return rt.integer(i);
    }
    rt.fail(Fault::value, fmt::format("{} is not in {}", repr(rt, b[0]), type_name(self)));
}

Value bit_length(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "bit_length", args, "/");
    const Int i = self.as_int();
    auto rest = i < 0 ? -static_cast<unsigned __int128>(i) : static_cast<unsigned __int128>(i);
    int64_t bits = 0;
    for (; rest > 0; rest >>= 1) ++bits;
    return Value::integer(bits);
}

Value bit_count(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "bit_count", args, "/");
    const Int i = self.as_int();
    const auto size =
        i < 0 ? -static_cast<unsigned __int128>(i) : static_cast<unsigned __int128>(i);
    return Value::integer(std::popcount(static_cast<uint64_t>(size)) +
                          std::popcount(static_cast<uint64_t>(size >> 64)));
}

Value conjugate(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "conjugate", args, "/");
    return positive(rt, self);
}

Value is_integer(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "is_integer", args, "/");
    const double d = self.as_real();
    return Value::boolean(std::isfinite(d) && d == std::floor(d));
}

Value cycler_next(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "next", args, "");
    auto& c = self.as<Cycler>();
    const size_t at = c.position;
    c.position = (at + 1) % c.items.size();
    return c.items[at];
}

Value cycler_reset(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "reset", args, "");
    self.as<Cycler>().position = 0;
    return Value::none();
}

constexpr BuiltinEntry kDict[] = {
    {"clear", refused, true},
    {"copy", dict_copy},
    {"fromkeys", dict_fromkeys},
    {"get", dict_get},
    {"items", dict_view<DictView::Part::items>},
    {"keys", dict_view<DictView::Part::keys>},
    {"pop", refused, true},
    {"popitem", refused, true},
    {"setdefault", refused, true},
    {"update", refused, true},
    {"values", dict_view<DictView::Part::values>},
};
constexpr BuiltinEntry kList[] = {
    {"append", refused, true},  {"clear", refused, true},  {"copy", sequence_copy},
    {"count", sequence_count},  {"extend", refused, true}, {"index", sequence_index},
    {"insert", refused, true},  {"pop", refused, true},    {"remove", refused, true},
    {"reverse", refused, true}, {"sort", refused, true},
};
constexpr BuiltinEntry kTuple[] = {{"count", sequence_count}, {"index", sequence_index}};
constexpr BuiltinEntry kInt[] = {
    {"bit_count", bit_count}, {"bit_length", bit_length}, {"conjugate", conjugate}};
constexpr BuiltinEntry kReal[] = {{"conjugate", conjugate}, {"is_integer", is_integer}};
constexpr BuiltinEntry kCycler[] = {{"next", cycler_next}, {"reset", cycler_reset}};

}  // namespace

std::span<const BuiltinEntry> container_methods(Kind kind) {
    switch (kind) {
        case Kind::dict: return kDict;
        case Kind::list: return kList;
        case Kind::tuple:
        case Kind::range: return kTuple;
        case Kind::boolean:
        case Kind::integer:
        case Kind::wide: return kInt;
        case Kind::real: return kReal;
        case Kind::cycler: return kCycler;
        default: return {};
    }
}

}  // namespace exl3::jinja
