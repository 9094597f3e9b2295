// Filters that look at a sequence as a whole.
#include <algorithm>

#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_keys.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {

Value folded(Runtime& rt, const Value& v) {
    return v.is_string() ? rt.string(to_lower(v.as_text())) : v;
}

void sort_keyed(Runtime& rt, std::vector<Keyed>& items, bool reverse) {
    std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
        return reverse ? less(rt, b.key, a.key) : less(rt, a.key, b.key);
    });
}

AttributeGetter::AttributeGetter(Runtime& rt, const Value& attribute, Value otherwise)
    : otherwise_(std::move(otherwise)) {
    if (attribute.missing() || attribute.is_none()) return;
    if (!attribute.is_string()) {
        parts_.push_back(attribute);
        return;
    }
    std::string_view rest = attribute.as_text();
    for (;;) {
        const size_t dot = std::min(rest.find('.'), rest.size());
        const std::string_view part = rest.substr(0, dot);
        Int index = 0;
        const bool digits =
            !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
        parts_.push_back(digits && parse_int(part, 10, index) == Parsed::yes ? rt.integer(index)
                                                                             : rt.string(part));
        if (dot == rest.size()) break;
        rest.remove_prefix(dot + 1);
    }
}

Value AttributeGetter::operator()(Runtime& rt, const Value& item) const {
    Value v = item;
    for (const Value& part : parts_) {
        v = get_item(rt, v, part);
        if (v.is_undefined() && !otherwise_.missing() && !otherwise_.is_none()) v = otherwise_;
    }
    return v;
}

namespace {

std::vector<Keyed> keyed(Runtime& rt, const Value& iterable, const AttributeGetter& get,
                         bool fold) {
    std::vector<Keyed> out;
    Cursor cursor(rt, iterable);
    for (Value item; cursor.next(item);) {
        Value key = get(rt, item);
        rt.heap.check(out.size() * sizeof(Keyed));
        out.push_back({fold ? folded(rt, key) : key, item});
    }
    return out;
}

Value items_of(Runtime& rt, const std::vector<Keyed>& sorted) {
    ListBuilder out(rt);
    for (const Keyed& k : sorted) out.push(k.item);
    return out.finish();
}

Value sort(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "sort", args, "reverse? case_sensitive? attribute?");
    // "a,b" sorts by a, then by b: the key is a list.
    std::vector<AttributeGetter> getters;
    if (b[2].is_string()) {
        std::string_view rest = b[2].as_text();
        for (;;) {
            const size_t comma = std::min(rest.find(','), rest.size());
            getters.emplace_back(rt, rt.string(rest.substr(0, comma)));
            if (comma == rest.size()) break;
            rest.remove_prefix(comma + 1);
        }
    } else {
        getters.emplace_back(rt, b[2]);
    }
    const bool fold = !b.flag(rt, 1);
    std::vector<Keyed> sorted;
    Cursor cursor(rt, self);
    for (Value item; cursor.next(item);) {
        std::vector<Value> key;
        key.reserve(getters.size());
        for (const auto& get : getters)
            key.push_back(fold ? folded(rt, get(rt, item)) : get(rt, item));
        rt.heap.check(sorted.size() * sizeof(Keyed));
        // A list even for one key: equal parts, undefined ones included, are never ordered.
        sorted.push_back({rt.list(std::move(key)), item});
    }
    sort_keyed(rt, sorted, b.flag(rt, 0));
    return items_of(rt, sorted);
}

Value dictsort(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "dictsort", args, "case_sensitive? by? reverse?");
    const std::string by = b[1].missing() ? "key" : to_text(rt, b[1]);
    if (by != "key" && by != "value")
        rt.fail(Fault::value, "You can only sort by either \"key\" or \"value\"");
    if (self.is_undefined()) fail_undefined(rt, self);
    if (!self.is(Kind::dict)) rt.fail(Fault::type, "dictsort needs a mapping");
    const bool fold = !b.flag(rt, 0);
    std::vector<Keyed> sorted;
    for (const Dict::Entry& e : self.as<Dict>().entries()) {
        const Value& key = by == "key" ? e.key : e.value;
        sorted.push_back({fold ? folded(rt, key) : key, rt.tuple({e.key, e.value})});
    }
    sort_keyed(rt, sorted, b.flag(rt, 2));
    return items_of(rt, sorted);
}

Value groupby(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "groupby", args, "attribute default? case_sensitive?");
    const AttributeGetter get(rt, b[0], b[1]);
    std::vector<Keyed> sorted = keyed(rt, self, get, !b.flag(rt, 2));
    sort_keyed(rt, sorted, false);
    ListBuilder groups(rt);
    for (size_t i = 0; i < sorted.size();) {
        ListBuilder members(rt);
        size_t end = i;
        for (; end < sorted.size() && equals(rt, sorted[i].key, sorted[end].key); ++end)
            members.push(sorted[end].item);
        end = std::max(end, i + 1);  // a key may differ from itself, as nan does
        Value group = rt.tuple({get(rt, sorted[i].item), members.finish()});
        group.as<Sequence>().group = true;
        groups.push(std::move(group));
        i = end;
    }
    return groups.finish();
}

// max and min: the first of the items whose key is the greatest or least.
Value extreme(Runtime& rt, const Value& self, const Args& args, bool greatest) {
    const Bound b = bind(rt, greatest ? "max" : "min", args, "case_sensitive? attribute?");
    const AttributeGetter get(rt, b[1]);
    const bool fold = !b.flag(rt, 0);
    Keyed best;
    Cursor cursor(rt, self);
    for (Value item; cursor.next(item);) {
        const Value value = get(rt, item);
        const Value key = fold ? folded(rt, value) : value;
        if (best.item.missing() || (greatest ? less(rt, best.key, key) : less(rt, key, best.key)))
            best = {key, item};
    }
    return best.item.missing() ? rt.hint("No aggregated item, sequence was empty.") : best.item;
}

Value max(Runtime& rt, const Value& self, const Args& args) {
    return extreme(rt, self, args, true);
}
Value min(Runtime& rt, const Value& self, const Args& args) {
    return extreme(rt, self, args, false);
}

Value sum(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "sum", args, "attribute? start?");
    const AttributeGetter get(rt, b[0]);
    Value total = b[1].missing() ? Value::integer(0) : b[1];
    if (total.is_string())
        rt.fail(Fault::type, "sum() can't sum strings [use ''.join(seq) instead]");
    Cursor cursor(rt, self);
    for (Value item; cursor.next(item);) total = binary(rt, BinaryOp::add, total, get(rt, item));
    return total;
}

Value join(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "join", args, "d? attribute?");
    const AttributeGetter get(rt, b[1]);
    std::string out;
    const std::string joint = b[0].missing() ? "" : to_text(rt, b[0]);
    bool first = true;
    Cursor cursor(rt, self);
    for (Value item; cursor.next(item);) {
        rt.heap.check(out.size() + joint.size());
        rt.work(joint.size() + 64);
        if (!first) out += joint;
        first = false;
        const Value part = get(rt, item);
        append_text(rt, out, rt.autoescape ? escape_html(rt, part) : part);
    }
    return rt.string(std::move(out), rt.autoescape);
}

Value length(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "length", args, "/");
    return rt.integer(length_of(rt, self));
}

Value list(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "list", args, "");
    return make_list(rt, self);
}

Value first(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "first", args, "");
    Value item;
    return Cursor(rt, self).next(item) ? item : rt.hint("No first item, sequence was empty.");
}

Value last(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "last", args, "");
    if (self.is(Kind::iterator) || !is_iterable(self))
        rt.fail(Fault::type, std::string("'") + type_name(self) + "' object is not reversible");
    if (self.is_undefined() || length_of(rt, self) == 0)
        return rt.hint("No last item, sequence was empty.");
    if (self.is(Kind::dict)) return self.as<Dict>().entries().back().key;
    if (self.is(Kind::dict_view)) return make_list(rt, self).as<Sequence>().items.back();
    return item_at(rt, self, length_of(rt, self) - 1);
}

Value random(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "random", args, "");
    if (self.is_undefined() || length_of(rt, self) == 0)
        return rt.hint("No random item, sequence was empty.");
    return get_item(rt, self, rt.integer(static_cast<size_t>(rt.random() % length_of(rt, self))));
}

}  // namespace

std::span<const BuiltinEntry> sequence_filters() {
    static constexpr BuiltinEntry kTable[] = {
        {"count", length}, {"dictsort", dictsort}, {"first", first},   {"groupby", groupby},
        {"join", join},    {"last", last},         {"length", length}, {"list", list},
        {"max", max},      {"min", min},           {"random", random}, {"sort", sort},
        {"sum", sum},
    };
    return kTable;
}

}  // namespace exl3::jinja
