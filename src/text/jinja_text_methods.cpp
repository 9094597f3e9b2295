// Methods of strings that make new strings. On markup they make markup, and escape what they take.
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

Value result(Runtime& rt, const Value& self, std::string text) {
    return rt.string(std::move(text), self.as<String>().markup);
}
Value result(Runtime& rt, const Value& self, std::string_view text) {
    return result(rt, self, std::string(text));
}

// A string argument as `self` takes it.
Value operand(Runtime& rt, const char* function, const Value& self, const Value& v) {
    to_str_argument(rt, function, v);
    return self.as<String>().markup ? escape_html(rt, v) : v;
}

template <std::string (*map)(std::string_view)>
Value mapped(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "str method", args, "");
    rt.work(self.as_text().size());
    return result(rt, self, map(self.as_text()));
}

enum class Side { left, right, both };

template <Side side>
Value stripped(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "strip", args, "/chars?");
    std::string_view text = self.as_text();
    if (b[0].missing() || b[0].is_none()) {
        if (side != Side::right) text = strip_left(text);
        if (side != Side::left) text = strip_right(text);
    } else {
        const Value set = operand(rt, "strip", self, b[0]);
        rt.work(text.size() + set.as_text().size());
        if (side != Side::right) text = strip_left(text, set.as_text());
        if (side != Side::left) text = strip_right(text, set.as_text());
    }
    return result(rt, self, text);
}

// Text with `left` and `right` copies of a fill character around it.
Value padded(Runtime& rt, const Value& self, const Value& fill, Int left, Int right) {
    std::string_view f = " ";
    Value held;
    if (!fill.missing()) {
        held = operand(rt, "pad", self, fill);
        if (held.as<String>().length != 1)
            rt.fail(Fault::type, "The fill character must be exactly one character long");
        f = held.as_text();
    }
    left = std::max<Int>(left, 0);
    right = std::max<Int>(right, 0);
    constexpr Int kFar = Int{1} << 60;  // beyond any limit, and far from overflow below
    if (left > kFar || right > kFar) throw MemoryExhausted{};
    rt.check_size((left + right) * static_cast<Int>(f.size()));
    std::string out;
    for (Int i = 0; i < left; ++i) out += f;
    out += self.as_text();
    for (Int i = 0; i < right; ++i) out += f;
    return result(rt, self, std::move(out));
}

Int missing_width(const Value& self, Int width) {
    return width - static_cast<Int>(self.as<String>().length);
}

Value center(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "center", args, "/width fillchar?");
    const Int width = to_index(rt, b[0]);
    const Int margin = std::max<Int>(0, missing_width(self, width));
    // The odd column goes left when the width is odd, as in Python.
    const Int left = margin / 2 + (margin & width & 1);
    return padded(rt, self, b[1], left, margin - left);
}

Value ljust(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "ljust", args, "/width fillchar?");
    return padded(rt, self, b[1], 0, missing_width(self, to_index(rt, b[0])));
}

Value rjust(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "rjust", args, "/width fillchar?");
    return padded(rt, self, b[1], missing_width(self, to_index(rt, b[0])), 0);
}

Value zfill(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "zfill", args, "/width");
    const Int missing = missing_width(self, to_index(rt, b[0]));
    std::string_view text = self.as_text();
    if (missing <= 0) return self;
    rt.check_size(missing);
    std::string out;
    if (text.starts_with('+') || text.starts_with('-')) {
        out = text[0];
        text.remove_prefix(1);
    }
    out.append(static_cast<size_t>(missing), '0');
    return result(rt, self, out.append(text));
}

Value expandtabs(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "expandtabs", args, "tabsize?");
    const Int size = std::max<Int>(0, b.integer(rt, 0, 8));
    if (size > (1 << 28)) throw MemoryExhausted{};
    std::string out;
    Int column = 0;
    const std::string_view text = self.as_text();
    for (size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        if (c == '\t') {
            const Int spaces = size > 0 ? size - column % size : 0;
            rt.check_size(spaces);
            rt.heap.check(out.size());
            out.append(static_cast<size_t>(spaces), ' ');
            column += spaces;
        } else {
            append_utf8(out, c);
            column = c == '\n' || c == '\r' ? 0 : column + 1;
        }
    }
    return result(rt, self, std::move(out));
}

Value format(Runtime& rt, const Value& self, const Args& args) {
    return format_braces(rt, self, args);
}

Value format_map(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "format_map", args, "/mapping");
    if (!b[0].is(Kind::dict)) rt.fail(Fault::type, "format_map() needs a mapping");
    Args named;
    for (const Dict::Entry& e : b[0].as<Dict>().entries())
        if (e.key.is_string()) named.named.emplace_back(e.key, e.value);
    return format_braces(rt, self, named);
}

Value join(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "join", args, "/iterable");
    std::string out;
    bool first = true;
    size_t index = 0;
    Cursor cursor(rt, b[0]);
    for (Value item; cursor.next(item); ++index) {
        if (!item.is_string() && !self.as<String>().markup)
            rt.fail(Fault::type, fmt::format("sequence item {}: expected str instance, {} found",
                                             index, type_name(item)));
        if (!first) out += self.as_text();
        first = false;
        append_text(rt, out, self.as<String>().markup ? escape_html(rt, item) : item);
    }
    return result(rt, self, std::move(out));
}

Value removeprefix(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "removeprefix", args, "/prefix");
    const std::string_view text = self.as_text(), p = to_str_argument(rt, "removeprefix", b[0]);
    return result(rt, self, text.starts_with(p) ? text.substr(p.size()) : text);
}

Value removesuffix(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "removesuffix", args, "/suffix");
    const std::string_view text = self.as_text(), s = to_str_argument(rt, "removesuffix", b[0]);
    return result(rt, self, text.ends_with(s) ? text.substr(0, text.size() - s.size()) : text);
}

Value replace(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "replace", args, "/old new count?");
    const Value old = operand(rt, "replace", self, b[0]);
    const Value with = operand(rt, "replace", self, b[1]);
    return result(
        rt, self,
        replace_text(rt, self.as_text(), old.as_text(), with.as_text(), b.integer(rt, 2, -1)));
}

template <bool from_right>
Value split(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, from_right ? "rsplit" : "split", args, "sep? maxsplit?");
    const bool spaces = b[0].missing() || b[0].is_none();
    const Int limit = b.integer(rt, 1, -1);
    const std::string_view text = self.as_text();
    rt.work(text.size());
    ListBuilder out(rt);
    const auto add = [&](std::string_view piece) { out.push(result(rt, self, piece)); };
    if (spaces) {
        split_spaces(text, limit, from_right, add);
    } else {
        const std::string_view separator = to_str_argument(rt, "split", b[0]);
        if (separator.empty()) rt.fail(Fault::value, "empty separator");
        split_at(rt, text, separator, limit, from_right, add);
    }
    if (from_right) std::reverse(out.items().begin(), out.items().end());
    return out.finish();
}

Value splitlines(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "splitlines", args, "keepends?");
    const bool keep = b.flag(rt, 0);
    ListBuilder out(rt);
    for_each_line(self.as_text(), [&](std::string_view line, std::string_view end) {
        const size_t size = line.size() + (keep ? end.size() : 0);
        out.push(result(rt, self, std::string_view(line.data(), size)));
    });
    return out.finish();
}

template <bool from_right>
Value partition(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "partition", args, "/sep");
    const Value separator = operand(rt, "partition", self, b[0]);
    const std::string_view text = self.as_text(), s = separator.as_text();
    if (s.empty()) rt.fail(Fault::value, "empty separator");
    rt.work(text.size());
    const size_t at = from_right ? find_last(rt, text, s) : find_text(text, s);
    const auto part = [&](std::string_view p) { return result(rt, self, p); };
    if (at == std::string_view::npos)
        return from_right ? rt.tuple({part(""), part(""), part(text)})
                          : rt.tuple({part(text), part(""), part("")});
    return rt.tuple({part(text.substr(0, at)), part(s), part(text.substr(at + s.size()))});
}

Value translate(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "translate", args, "/table");
    std::string out;
    const std::string_view text = self.as_text();
    for (size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        const Value to = get_item(rt, b[0], Value::integer(c));
        if (to.is_undefined())
            append_utf8(out, c);
        else if (to.is_string())
            append_text(rt, out, to);
        else if (to.is_int() && to.as_int() >= 0 && to.as_int() <= 0x10ffff)
            append_utf8(out, static_cast<char32_t>(to.as_int()));
        else if (!to.is_none())
            rt.fail(Fault::type, "character mapping must return integer, None or str");
    }
    return result(rt, self, std::move(out));
}

}  // namespace

std::span<const BuiltinEntry> text_methods() {
    static constexpr BuiltinEntry kTable[] = {
        {"capitalize", mapped<to_capital>},
        {"casefold", mapped<to_folded>},
        {"center", center},
        {"expandtabs", expandtabs},
        {"format", format},
        {"format_map", format_map},
        {"join", join},
        {"ljust", ljust},
        {"lower", mapped<to_lower>},
        {"lstrip", stripped<Side::left>},
        {"partition", partition<false>},
        {"removeprefix", removeprefix},
        {"removesuffix", removesuffix},
        {"replace", replace},
        {"rjust", rjust},
        {"rpartition", partition<true>},
        {"rsplit", split<true>},
        {"rstrip", stripped<Side::right>},
        {"split", split<false>},
        {"splitlines", splitlines},
        {"strip", stripped<Side::both>},
        {"swapcase", mapped<to_swapped>},
        {"title", mapped<to_title>},
        {"translate", translate},
        {"upper", mapped<to_upper>},
        {"zfill", zfill},
    };
    return kTable;
}

}  // namespace exl3::jinja
