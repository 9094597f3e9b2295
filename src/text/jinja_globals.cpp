// Functions that every template can call.
#include <fmt/format.h>

#include <limits>

#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_ops.h"
#include "text/jinja_time.h"

namespace exl3::jinja {
namespace {

constexpr Int kMaxRange = 100'000;  // of Jinja's sandbox

int64_t range_argument(Runtime& rt, const Value& v) {
    const Int i = to_index(rt, v);
    constexpr Int kLimit = std::numeric_limits<int64_t>::max() / 2;
    if (i > kLimit || i < -kLimit) rt.fail(Fault::overflow, "range() argument is too large");
    return static_cast<int64_t>(i);
}

Value range(Runtime& rt, const Value&, const Args& args) {
    const Bound b = bind(rt, "range", args, "/start stop? step?");
    const bool two = !b[1].missing();
    const int64_t start = two ? range_argument(rt, b[0]) : 0;
    const int64_t stop = range_argument(rt, b[two ? 1 : 0]);
    const int64_t step = b[2].missing() ? 1 : range_argument(rt, b[2]);
    if (step == 0) rt.fail(Fault::value, "range() arg 3 must not be zero");
    Value made = Value::object(Kind::range, rt.heap.make<Range>(0, start, stop, step));
    if (made.as<Range>().length() > kMaxRange)
        rt.fail(Fault::overflow, fmt::format("Range too big. The sandbox blocks ranges larger than "
                                             "MAX_RANGE ({}).",
                                             decimal(kMaxRange)));
    return made;
}

// dict(mapping or pairs, name=value, ...)
Value make_mapping(Runtime& rt, const char* function, const Args& args) {
    if (args.positional.size() > 1)
        rt.fail(Fault::type, fmt::format("{} expected at most 1 argument, got {}", function,
                                         args.positional.size()));
    if (!args.positional.empty() && args.positional[0].is_undefined())
        fail_undefined(rt, args.positional[0]);
    Value made = make_dict(rt);
    auto& dict = made.as<Dict>();
    if (!args.positional.empty() && args.positional[0].is(Kind::dict)) {
        for (const Dict::Entry& e : args.positional[0].as<Dict>().entries())
            dict.set(rt, e.key, e.value);
    } else if (!args.positional.empty()) {
        Cursor cursor(rt, args.positional[0]);
        for (Value pair; cursor.next(pair);) {
            const Value parts = make_list(rt, pair);
            const auto& items = parts.as<Sequence>().items;
            if (items.size() != 2)
                rt.fail(Fault::value,
                        fmt::format("dictionary update sequence element #{} has length "
                                    "{}; 2 is required",
                                    dict.size(), items.size()));
            dict.set(rt, items[0], items[1]);
        }
    }
    for (const auto& [name, value] : args.named) dict.set(rt, name, value);
    return made;
}

Value dict(Runtime& rt, const Value&, const Args& args) {
    return make_mapping(rt, "dict", args);
}

Value name_space(Runtime& rt, const Value&, const Args& args) {
    return Value::object(Kind::name_space,
                         rt.heap.make<Namespace>(0, make_mapping(rt, "namespace", args)));
}

Value cycler(Runtime& rt, const Value&, const Args& args) {
    if (!args.named.empty()) rt.fail(Fault::type, "cycler() takes no keyword arguments");
    if (args.positional.empty()) rt.fail(Fault::runtime, "at least one item has to be provided");
    return Value::object(Kind::cycler, rt.heap.make<Cycler>(0, args.positional));
}

Value joiner(Runtime& rt, const Value&, const Args& args) {
    const Bound b = bind(rt, "joiner", args, "sep?");
    return Value::object(Kind::joiner,
                         rt.heap.make<Joiner>(0, b[0].missing() ? rt.string(", ") : b[0]));
}

Value raise_exception(Runtime& rt, const Value&, const Args& args) {
    const Bound b = bind(rt, "raise_exception", args, "message");
    rt.fail(Fault::raised, to_text(rt, b[0]));
}

Value strftime_now(Runtime& rt, const Value&, const Args& args) {
    const Bound b = bind(rt, "strftime_now", args, "format");
    const std::string_view format = to_str_argument(rt, "strftime_now", b[0]);
    rt.check_size(static_cast<Int>(format.size()) * 50);  // "%100Y" makes 100 characters of 5
    return rt.string(format_time(format, rt.now()));
}

Value lipsum(Runtime& rt, const Value&, const Args&) {
    rt.fail(Fault::unsupported, "lipsum() is not supported");
}

}  // namespace

const BuiltinEntry* find_global(std::string_view name) {
    static constexpr BuiltinEntry kTable[] = {
        {"cycler", cycler},        {"dict", dict},
        {"joiner", joiner},        {"lipsum", lipsum},
        {"namespace", name_space}, {"raise_exception", raise_exception},
        {"range", range},          {"strftime_now", strftime_now},
    };
    return find_entry(kTable, name);
}

}  // namespace exl3::jinja
