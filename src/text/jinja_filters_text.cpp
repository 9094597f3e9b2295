// Filters that take and give text.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_format.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

// The method `name` of str(value): most text filters are one.
Value as_method(Runtime& rt, const Value& self, std::string_view name, const Args& args) {
    const Value text = soft_text(rt, self);
    return find_method(Kind::string, name)->call(rt, text, args);
}

Value capitalize(Runtime& rt, const Value& self, const Args& args) {
    return as_method(rt, self, "capitalize", args);
}
Value lower(Runtime& rt, const Value& self, const Args& args) {
    return as_method(rt, self, "lower", args);
}
Value upper(Runtime& rt, const Value& self, const Args& args) {
    return as_method(rt, self, "upper", args);
}

Value trim(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "trim", args, "chars?");
    Args chars;
    if (!b[0].missing()) chars.positional.push_back(b[0]);
    return as_method(rt, self, "strip", chars);
}

Value center(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "center", args, "width?");
    Args width;
    width.positional.push_back(b[0].missing() ? Value::integer(80) : b[0]);
    return as_method(rt, self, "center", width);
}

Value string(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "string", args, "");
    return soft_text(rt, self);
}

Value title(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "title", args, "");
    const std::string text = to_text(rt, self);
    rt.work(text.size());
    return rt.string(title_words(text));
}

Value format(Runtime& rt, const Value& self, const Args& args) {
    if (!args.positional.empty() && !args.named.empty())
        rt.fail(Fault::type, "can't handle positional and keyword arguments at the same time");
    Value values;
    if (args.named.empty()) {
        values = rt.tuple(args.positional);
    } else {
        values = make_dict(rt);
        for (const auto& [name, value] : args.named) values.as<Dict>().set(rt, name, value);
    }
    return format_percent(rt, soft_text(rt, self), values);
}

Value replace(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "replace", args, "old new count?");
    const Int count = b[2].is_none() ? -1 : b.integer(rt, 2, -1);
    const std::string old = to_text(rt, b[0]), with = to_text(rt, b[1]);
    return rt.string(replace_text(rt, to_text(rt, self), old, with, count), rt.autoescape);
}

Value indent(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "indent", args, "width? first? blank?");
    if (self.is_undefined()) fail_undefined(rt, self);
    const std::string_view text = to_str_argument(rt, "indent", self);
    std::string margin(4, ' ');
    if (b[0].is_string()) {
        margin = b[0].as_text();
    } else if (!b[0].missing()) {
        const Int width = std::max<Int>(0, to_index(rt, b[0]));
        rt.check_size(width);
        margin.assign(static_cast<size_t>(width), ' ');
    }
    const bool first = b.flag(rt, 1), blank = b.flag(rt, 2);
    std::string out;
    bool at_start = true;
    for_each_line(std::string(text) + "\n", [&](std::string_view line, std::string_view) {
        rt.heap.check(out.size() + margin.size() + line.size());
        rt.work(margin.size() + 64);
        if (!at_start) out += '\n';
        if (at_start ? first : blank || !line.empty()) out += margin;
        at_start = false;
        out += line;
    });
    return rt.string(std::move(out), self.as<String>().markup);
}

Value truncate(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "truncate", args, "length? killwords? end? leeway?");
    const Int length = b.integer(rt, 0, 255);
    const std::string end =
        b[2].missing() ? "..." : std::string(to_str_argument(rt, "truncate", b[2]));
    const auto end_length = static_cast<Int>(count_code_points(end));
    const Int leeway = b[3].is_none() ? 5 : b.integer(rt, 3, 5);
    if (length < end_length)
        rt.fail(Fault::value, fmt::format("truncate: expected length >= {}, got {}",
                                          decimal(end_length), decimal(length)));
    if (leeway < 0) rt.fail(Fault::value, "truncate: expected leeway >= 0");
    if (static_cast<Int>(length_of(rt, self)) - leeway <= length) return self;
    const std::string_view text = to_str_argument(rt, "truncate", self);
    std::string_view kept =
        text.substr(0, offset_of(text, static_cast<size_t>(length - end_length)));
    if (!b.flag(rt, 1)) kept = kept.substr(0, kept.rfind(' '));
    return rt.string(std::string(kept) + end, self.as<String>().markup);
}

Value wordcount(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "wordcount", args, "");
    const std::string text = to_text(rt, self);
    rt.work(text.size());
    return rt.integer(count_words(text));
}

Value wordwrap(Runtime& rt, const Value& self, const Args& args) {
    const Bound b =
        bind(rt, "wordwrap", args, "width? break_long_words? wrapstring? break_on_hyphens?");
    const Int width = b.integer(rt, 0, 79);
    if (width <= 0)
        rt.fail(Fault::value, fmt::format("invalid width {} (must be > 0)", decimal(width)));
    const WrapOptions options{.width = static_cast<size_t>(std::min<Int>(width, 1 << 30)),
                              .break_long_words = b.flag(rt, 1, true),
                              .break_on_hyphens = b.flag(rt, 3, true)};
    const bool given = !b[2].missing() && !b[2].is_none() && truthy(rt, b[2]);
    const std::string joint = given ? std::string(to_str_argument(rt, "wordwrap", b[2])) : "\n";
    if (self.is_undefined()) fail_undefined(rt, self);
    const std::string_view text = to_str_argument(rt, "wordwrap", self);
    std::string out;
    bool first = true;
    rt.check_growth(text.size(), 40);  // every word becomes a string of its own
    for_each_line(text, [&](std::string_view line, std::string_view) {
        const auto wrapped = wrap_line(rt, line, options);
        for (size_t i = 0; i < std::max<size_t>(wrapped.size(), 1); ++i) {
            rt.heap.check(out.size() + joint.size());
            if (!first) out += joint;
            first = false;
            if (i < wrapped.size()) out += wrapped[i];
        }
    });
    return rt.string(std::move(out), self.as<String>().markup);
}

}  // namespace

std::span<const BuiltinEntry> text_filters() {
    static constexpr BuiltinEntry kTable[] = {
        {"capitalize", capitalize}, {"center", center}, {"format", format},
        {"indent", indent},         {"lower", lower},   {"replace", replace},
        {"string", string},         {"title", title},   {"trim", trim},
        {"truncate", truncate},     {"upper", upper},   {"wordcount", wordcount},
        {"wordwrap", wordwrap},
    };
    return kTable;
}

}  // namespace exl3::jinja
