// Filters that walk a sequence lazily, as Python's generators do: nothing happens, and nothing
// fails, before somebody asks for an item; and an item can be asked for once.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_keys.h"
#include "text/jinja_ops.h"

namespace exl3::jinja {
namespace {

template <typename T, typename... A>
Value make_iterator(Runtime& rt, A&&... args) {
    return Value::object(Kind::iterator, rt.heap.make<T>(0, std::forward<A>(args)...));
}

// An argument that names a filter or test for map, select and the like.
const BuiltinEntry* named(Runtime& rt, const char* what, const Value& name,
                          const BuiltinEntry* (*find)(std::string_view)) {
    const BuiltinEntry* e = name.is_string() ? find(name.as_text()) : nullptr;
    if (!e) rt.fail(Fault::runtime, fmt::format("No {} named {} found.", what, repr(rt, name)));
    return e;
}

/// A generator over `source`, which it looks at when the first item is asked for.
struct Walk : Iterator {
    explicit Walk(Value s) : source(std::move(s)) {}
    bool next(Runtime& rt, Value& out) override {
        if (finished) return false;
        const Deeper deeper(rt);  // a source can be a walk over a walk over...
        if (!cursor) {
            finished = true;  // for good if this fails
            if (!prepare(rt)) return false;
            cursor.emplace(rt, source);
            finished = false;
        }
        finished = true;
        const bool found = step(rt, out);
        finished = !found;
        return found;
    }
    /// Called once, first; false ends the walk before it starts.
    virtual bool prepare(Runtime& rt) {
        static_cast<void>(rt);
        return true;
    }
    virtual bool step(Runtime& rt, Value& out) = 0;

    Value source;
    std::optional<Cursor> cursor;
    bool finished = false;
};

struct Map : Walk {
    Map(Value s, Args a) : Walk(std::move(s)), args(std::move(a)) {}
    bool prepare(Runtime& rt) override {
        if (!truthy(rt, source)) return false;
        const auto named_value = [&](std::string_view name) {
            const auto at = std::find_if(args.named.begin(), args.named.end(),
                                         [&](const auto& a) { return a.first.as_text() == name; });
            if (at == args.named.end()) return Value();
            Value v = at->second;
            args.named.erase(at);
            return v;
        };
        if (args.positional.empty()) {
            const Value attribute = named_value("attribute");
            if (attribute.missing()) rt.fail(Fault::type, "map requires a filter argument");
            const Value otherwise = named_value("default");
            if (!args.named.empty())
                rt.fail(Fault::type, fmt::format("Unexpected keyword argument '{}'",
                                                 args.named[0].first.as_text()));
            get.emplace(rt, attribute, otherwise);
            return true;
        }
        filter = named(rt, "filter", args.positional[0], find_filter);
        args.positional.erase(args.positional.begin());
        return true;
    }
    bool step(Runtime& rt, Value& out) override {
        Value item;
        if (!cursor->next(item)) return false;
        out = filter ? filter->call(rt, item, args) : (*get)(rt, item);
        return true;
    }
    Args args;
    const BuiltinEntry* filter = nullptr;
    std::optional<AttributeGetter> get;
};

struct Select : Walk {
    Select(Value s, Args a, bool w, bool b)
        : Walk(std::move(s)), args(std::move(a)), wanted(w), by_attribute(b) {}
    bool prepare(Runtime& rt) override {
        if (!truthy(rt, source)) return false;
        auto& positional = args.positional;
        if (by_attribute) {
            if (positional.empty()) rt.fail(Fault::type, "Missing parameter for attribute name");
            get.emplace(rt, positional[0]);
            positional.erase(positional.begin());
        }
        if (!positional.empty()) {
            test = named(rt, "test", positional[0], find_test);
            positional.erase(positional.begin());
        }
        return true;
    }
    bool step(Runtime& rt, Value& out) override {
        for (Value item; cursor->next(item);) {
            const Value v = get ? (*get)(rt, item) : item;
            if (truthy(rt, test ? test->call(rt, v, args) : v) == wanted) {
                out = item;
                return true;
            }
        }
        return false;
    }
    Args args;
    bool wanted, by_attribute;
    const BuiltinEntry* test = nullptr;
    std::optional<AttributeGetter> get;
};

template <bool wanted, bool by_attribute>
Value select(Runtime& rt, const Value& self, const Args& args) {
    return make_iterator<Select>(rt, self, args, wanted, by_attribute);
}

Value map(Runtime& rt, const Value& self, const Args& args) {
    return make_iterator<Map>(rt, self, args);
}

struct Unique : Walk {
    Unique(Value s, AttributeGetter g, bool f, Value d)
        : Walk(std::move(s)), get(std::move(g)), fold(f), seen(std::move(d)) {}
    bool step(Runtime& rt, Value& out) override {
        for (Value item; cursor->next(item);) {
            Value key = get(rt, item);
            if (fold) key = folded(rt, key);
            auto& dict = seen.as<Dict>();
            if (dict.find(rt, key)) continue;
            dict.set(rt, key, Value::none());
            out = item;
            return true;
        }
        return false;
    }
    AttributeGetter get;
    bool fold;
    Value seen;
};

Value unique(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "unique", args, "case_sensitive? attribute?");
    return make_iterator<Unique>(rt, self, AttributeGetter(rt, b[1]), !b.flag(rt, 0),
                                 make_dict(rt));
}

struct Batch : Walk {
    Batch(Value s, Int c, Value f) : Walk(std::move(s)), size(c), fill(std::move(f)) {}
    bool step(Runtime& rt, Value& out) override {
        ListBuilder row(rt);
        Value item;
        // A size below 1 is never reached, so that everything goes into one row; but 0 is where a
        // row starts.
        if (size == 0 && !started && cursor->next(first)) {
            started = true;
            out = row.finish();
            return true;
        }
        if (!first.missing()) row.push(std::move(first));
        while ((size < 1 || static_cast<Int>(row.items().size()) < size) && cursor->next(item))
            row.push(item);
        if (row.items().empty()) return false;
        while (!fill.missing() && !fill.is_none() && static_cast<Int>(row.items().size()) < size)
            row.push(fill);
        out = row.finish();
        return true;
    }
    Int size;
    Value fill;
    Value first;  // of the only row of size 0
    bool started = false;
};

Value batch(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "batch", args, "linecount fill_with?");
    return make_iterator<Batch>(rt, self, to_index(rt, b[0]), b[1]);
}

struct Slices : Walk {
    Slices(Value s, Int c, Value f) : Walk(std::move(s)), slices(c), fill(std::move(f)) {}
    bool prepare(Runtime& rt) override {
        if (slices == 0) rt.fail(Fault::zero_division, "integer division or modulo by zero");
        source = make_list(rt, source);
        return true;
    }
    bool step(Runtime& rt, Value& out) override {
        const auto& items = source.as<Sequence>().items;
        const auto length = static_cast<Int>(items.size());
        if (number >= slices) return false;
        const Int size = length / slices, longer = length % slices;
        const Int start = number * size + std::min(number, longer);
        const Int end = start + size + (number < longer ? 1 : 0);
        ListBuilder part(rt);
        for (Int i = start; i < end; ++i) part.push(items[static_cast<size_t>(i)]);
        if (!fill.missing() && !fill.is_none() && number >= longer) part.push(fill);
        ++number;
        out = part.finish();
        return true;
    }
    Int slices;
    Value fill;
    Int number = 0;
};

Value slice(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "slice", args, "slices fill_with?");
    return make_iterator<Slices>(rt, self, to_index(rt, b[0]), b[1]);
}

struct Items : Walk {
    using Walk::Walk;
    bool prepare(Runtime& rt) override {
        if (source.is_undefined()) return false;
        if (!source.is(Kind::dict)) rt.fail(Fault::type, "Can only get item pairs from a mapping.");
        source = Value::object(Kind::dict_view,
                               rt.heap.make<DictView>(0, source, DictView::Part::items));
        return true;
    }
    bool step(Runtime&, Value& out) override { return cursor->next(out); }
};

Value items(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "items", args, "");
    return make_iterator<Items>(rt, self);
}

/// reversed() of something whose items can be reached by index.
struct Reversed : Iterator {
    Reversed(Value s, size_t n) : source(std::move(s)), left(n) {}
    bool next(Runtime& rt, Value& out) override {
        if (left == 0) return false;
        out = item_at(rt, source, --left);
        return true;
    }
    const char* type() const override {
        return source.is(Kind::list) ? "list_reverseiterator" : "reversed";
    }
    Value source;
    size_t left;
};

Value reverse(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "reverse", args, "");
    if (self.is_string()) return get_slice(rt, self, {}, {}, Value::integer(-1));
    if (!is_iterable(self)) rt.fail(Fault::type, "argument must be iterable");
    if (self.is(Kind::iterator)) {  // no reversed() for these: a list
        Value list = make_list(rt, self);
        std::reverse(list.as<Sequence>().items.begin(), list.as<Sequence>().items.end());
        return list;
    }
    const bool indexed = self.is_sequence() || self.is(Kind::range);
    return make_iterator<Reversed>(rt, indexed ? self : make_list(rt, self), length_of(rt, self));
}

Value default_value(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "default", args, "default_value? boolean?");
    if (!self.is_undefined() && !(b.flag(rt, 1) && !truthy(rt, self))) return self;
    return b[0].missing() ? rt.string("") : b[0];
}

Value attr(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "attr", args, "name");
    const Value name = soft_text(rt, b[0]);
    const Value found = own_attribute(rt, self, name);
    if (!found.missing()) return found;
    return rt.undefined(Undefined::Why::attribute, type_description(self), name);
}

}  // namespace

std::span<const BuiltinEntry> selection_filters() {
    static constexpr BuiltinEntry kTable[] = {
        {"attr", attr},
        {"batch", batch},
        {"d", default_value},
        {"default", default_value},
        {"items", items},
        {"map", map},
        {"reject", select<false, false>},
        {"rejectattr", select<false, true>},
        {"reverse", reverse},
        {"select", select<true, false>},
        {"selectattr", select<true, true>},
        {"slice", slice},
        {"unique", unique},
    };
    return kTable;
}

}  // namespace exl3::jinja
