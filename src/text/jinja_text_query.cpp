// Methods of strings that answer questions.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_call.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

/// The part of a string that start and end arguments select, and where it begins.
struct Region {
    std::string_view text;
    size_t first = 0;    ///< code points before it
    bool valid = false;  ///< false: the start lies beyond the end
};

Region region(Runtime& rt, const Value& self, const Value& start, const Value& end) {
    const auto length = static_cast<Int>(self.as<String>().length);
    const auto clip = [&](const Value& v, Int otherwise) {
        if (v.missing() || v.is_none()) return otherwise;
        Int i = to_index(rt, v);
        if (i < 0) i = i < -length ? 0 : i + length;
        return i;
    };
    const Int from = clip(start, 0), to = std::min(clip(end, length), length);
    if (from > length || from > to) return {{}, 0, from <= length && from <= to};
    const std::string_view text = self.as_text();
    rt.work(text.size());
    const size_t a = offset_of(text, static_cast<size_t>(from));
    const size_t b = a + offset_of(text.substr(a), static_cast<size_t>(to - from));
    return {text.substr(a, b - a), static_cast<size_t>(from), true};
}

// Where the argument occurs, in code points; -1 if nowhere.
int64_t locate(Runtime& rt, const char* function, const Value& self, const Args& args, bool last) {
    const Bound b = bind(rt, function, args, "/sub start? end?");
    const std::string_view sub = to_str_argument(rt, function, b[0]);
    const Region r = region(rt, self, b[1], b[2]);
    if (!r.valid) return -1;
    const size_t at = last ? find_last(rt, r.text, sub) : find_text(r.text, sub);
    if (at == std::string_view::npos) return -1;
    return static_cast<int64_t>(r.first + count_code_points(r.text.substr(0, at)));
}

template <bool last>
Value find(Runtime& rt, const Value& self, const Args& args) {
    return Value::integer(locate(rt, "find", self, args, last));
}

template <bool last>
Value index(Runtime& rt, const Value& self, const Args& args) {
    const int64_t at = locate(rt, "index", self, args, last);
    if (at < 0) rt.fail(Fault::value, "substring not found");
    return Value::integer(at);
}

Value count(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "count", args, "/sub start? end?");
    const std::string_view sub = to_str_argument(rt, "count", b[0]);
    const Region r = region(rt, self, b[1], b[2]);
    if (!r.valid) return Value::integer(0);
    if (sub.empty()) return rt.integer(count_code_points(r.text) + 1);
    size_t n = 0;
    for (size_t at = find_text(r.text, sub); at != std::string_view::npos;
         at = find_text(r.text, sub, at + sub.size()))
        ++n;
    return rt.integer(n);
}

template <bool at_end>
Value has_affix(Runtime& rt, const Value& self, const Args& args) {
    const char* name = at_end ? "endswith" : "startswith";
    const Bound b = bind(rt, name, args, "/affix start? end?");
    const Region r = region(rt, self, b[1], b[2]);
    const auto matches = [&](const Value& v) {
        if (!v.is_string())
            rt.fail(Fault::type, fmt::format("{} first arg must be str or a tuple of str, not {}",
                                             name, type_name(v)));
        if (!r.valid) return false;
        return at_end ? r.text.ends_with(v.as_text()) : r.text.starts_with(v.as_text());
    };
    if (!b[0].is(Kind::tuple)) return Value::boolean(matches(b[0]));
    const auto& items = b[0].as<Sequence>().items;
    return Value::boolean(std::any_of(items.begin(), items.end(), matches));
}

// True for a text that is not empty and all of whose code points satisfy `test`.
template <bool (*test)(char32_t)>
Value all(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "str method", args, "");
    const std::string_view text = self.as_text();
    rt.work(text.size());
    bool good = !text.empty();
    for (size_t at = 0; good && at < text.size();) good = test(next_code_point(text, at));
    return Value::boolean(good);
}

// All cased code points satisfy `test`, and there is one.
template <bool (*test)(char32_t)>
Value all_cased(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "str method", args, "");
    const std::string_view text = self.as_text();
    rt.work(text.size());
    bool seen = false;
    for (size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        if (!is_cased(c)) continue;
        if (!test(c)) return Value::boolean(false);
        seen = true;
    }
    return Value::boolean(seen);
}

Value isascii(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "isascii", args, "");
    return Value::boolean(self.as<String>().ascii());
}

Value isprintable(Runtime& rt, const Value& self, const Args& args) {
    if (self.as_text().empty()) return Value::boolean(true);
    return all<is_printable>(rt, self, args);
}

Value isidentifier(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "isidentifier", args, "");
    const std::string_view text = self.as_text();
    size_t at = 0;
    if (text.empty() || !is_identifier_start(next_code_point(text, at)))
        return Value::boolean(false);
    while (at < text.size())
        if (!is_identifier_part(next_code_point(text, at))) return Value::boolean(false);
    return Value::boolean(true);
}

Value istitle(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "istitle", args, "");
    const std::string_view text = self.as_text();
    bool cased_before = false, seen = false;
    for (size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        const bool starts = is_upper(c) || is_title(c);
        if (starts ? cased_before : is_lower(c) && !cased_before) return Value::boolean(false);
        cased_before = starts || is_lower(c);
        seen |= cased_before;
    }
    return Value::boolean(seen);
}

Value encode(Runtime& rt, const Value&, const Args&) {
    rt.fail(Fault::unsupported, "encode() is not supported: templates have no bytes");
}

}  // namespace

std::span<const BuiltinEntry> text_query_methods() {
    static constexpr BuiltinEntry kTable[] = {
        {"count", count},
        {"encode", encode},
        {"endswith", has_affix<true>},
        {"find", find<false>},
        {"index", index<false>},
        {"isalnum", all<is_alnum>},
        {"isalpha", all<is_alpha>},
        {"isascii", isascii},
        {"isdecimal", all<is_decimal>},
        {"isdigit", all<is_digit>},
        {"isidentifier", isidentifier},
        {"islower", all_cased<is_lower>},
        {"isnumeric", all<is_numeric>},
        {"isprintable", isprintable},
        {"isspace", all<is_space>},
        {"istitle", istitle},
        {"isupper", all_cased<is_upper>},
        {"rfind", find<true>},
        {"rindex", index<true>},
        {"startswith", has_affix<false>},
    };
    return kTable;
}

}  // namespace exl3::jinja
