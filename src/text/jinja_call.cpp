#include "text/jinja_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_ops.h"

namespace exl3::jinja {
namespace {

Value call_joiner(Runtime& rt, Joiner& joiner) {
    if (joiner.used) return joiner.separator;
    joiner.used = true;
    return rt.string("");
}

// Parameter `index` of a list such as "old new count?"; empty past the end.
std::string_view parameter(std::string_view list, size_t index) {
    for (;; --index) {
        const size_t end = std::min(list.find(' '), list.size());
        if (index == 0) return list.substr(0, end);
        if (end == list.size()) return {};
        list.remove_prefix(end + 1);
    }
}

bool optional(std::string_view p) {
    return p.ends_with('?');
}
std::string_view bare(std::string_view p) {
    return optional(p) ? p.substr(0, p.size() - 1) : p;
}

}  // namespace

Value call(Runtime& rt, const Value& callee, const Args& args) {
    const Deeper deeper(rt);
    rt.step();
    switch (callee.kind()) {
        case Kind::function: {
            const auto& f = callee.as<Function>();
            return f.entry->call(rt, f.self, args);
        }
        case Kind::method: {
            const auto& m = callee.as<Method>();
            return m.entry->call(rt, m.self, args);
        }
        case Kind::macro: return callee.as<Callable>().call(rt, args);
        case Kind::loop: return callee.as<LoopObject>().call(rt, args);
        case Kind::joiner:
            bind(rt, "joiner", args, "");
            return call_joiner(rt, callee.as<Joiner>());
        case Kind::undefined: fail_undefined(rt, callee);
        default:
            rt.fail(Fault::type, fmt::format("'{}' object is not callable", type_name(callee)));
    }
}

Bound bind(Runtime& rt, const char* function, const Args& args, std::string_view parameters) {
    const bool by_name = !parameters.starts_with('/');
    if (!by_name) parameters.remove_prefix(1);
    size_t count = 0;
    if (!parameters.empty())
        count = 1 + static_cast<size_t>(std::count(parameters.begin(), parameters.end(), ' '));
    if (args.positional.size() > count)
        rt.fail(Fault::type, fmt::format("{}() takes at most {} argument{} ({} given)", function,
                                         count, count == 1 ? "" : "s", args.positional.size()));
    Bound bound;
    for (size_t i = 0; i < args.positional.size(); ++i) bound.values_[i] = args.positional[i];
    for (const auto& [name, value] : args.named) {
        size_t i = 0;
        while (i < count && (!by_name || bare(parameter(parameters, i)) != name.as_text())) ++i;
        if (i == count)
            rt.fail(Fault::type, fmt::format("{}() got an unexpected keyword argument '{}'",
                                             function, name.as_text()));
        if (!bound.values_[i].missing())
            rt.fail(Fault::type, fmt::format("{}() got multiple values for argument '{}'", function,
                                             name.as_text()));
        bound.values_[i] = value;
    }
    for (size_t i = args.positional.size(); i < count; ++i)
        if (const auto p = parameter(parameters, i); !optional(p) && bound.values_[i].missing())
            rt.fail(Fault::type,
                    fmt::format("{}() missing required argument: '{}'", function, bare(p)));
    return bound;
}

bool Bound::flag(Runtime& rt, size_t i, bool otherwise) const {
    return values_[i].missing() ? otherwise : truthy(rt, values_[i]);
}

Int Bound::integer(Runtime& rt, size_t i, Int otherwise) const {
    return values_[i].missing() ? otherwise : to_index(rt, values_[i]);
}

Int to_index(Runtime& rt, const Value& v) {
    if (v.is_int()) return v.as_int();
    if (v.is_undefined()) fail_undefined(rt, v);
    rt.fail(Fault::type,
            fmt::format("'{}' object cannot be interpreted as an integer", type_name(v)));
}

std::string_view to_str_argument(Runtime& rt, const char* function, const Value& v) {
    if (v.is_string()) return v.as_text();
    rt.fail(Fault::type, fmt::format("{}() argument must be str, not {}", function, type_name(v)));
}

const BuiltinEntry* find_entry(std::span<const BuiltinEntry> sorted, std::string_view name) {
    const auto at =
        std::lower_bound(sorted.begin(), sorted.end(), name,
                         [](const BuiltinEntry& e, std::string_view n) { return e.name < n; });
    return at != sorted.end() && at->name == name ? &*at : nullptr;
}

const BuiltinEntry* find_filter(std::string_view name) {
    for (const auto table : {text_filters(), html_filters(), number_filters(), sequence_filters(),
                             selection_filters()})
        if (const BuiltinEntry* e = find_entry(table, name)) return e;
    return nullptr;
}

const BuiltinEntry* find_method(Kind kind, std::string_view name) {
    if (kind != Kind::string) return find_entry(container_methods(kind), name);
    const BuiltinEntry* e = find_entry(text_methods(), name);
    return e ? e : find_entry(text_query_methods(), name);
}

}  // namespace exl3::jinja
