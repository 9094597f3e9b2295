#include "grammar/json_text.h"

#include <fmt/format.h>

#include <map>

#include "grammar/json_numbers.h"

namespace exl3 {
namespace {

using Expr = Rules::Expr;

// What a string may hold as it is.
CharSet plain_chars() {
    return CharSet(0x20, kLastCodePoint).without(CharSet::of(U"\"\\"));
}

}  // namespace

Expr JsonText::space() {
    if (space_ < 0)
        space_ = r_.add_rule(
            "space", r_.any_of({r_.empty(), r_.text(" "),
                                r_.sequence({r_.text("\n"),
                                             r_.repeat(r_.chars(CharSet::of(U" \t")), 0, 20)})}));
    return r_.call(space_);
}

Expr JsonText::any_char() {
    if (char_ >= 0) return r_.call(char_);
    const Expr hex = r_.chars(CharSet::of(U"0123456789abcdefABCDEF"));
    const Expr low_digit = r_.chars(CharSet::of(U"01234567"));
    const Expr d = r_.chars(CharSet::of(U"dD"));
    // \uD800 to \uDFFF only as a pair of both halves.
    const Expr unit =
        r_.any_of({r_.sequence({r_.chars(CharSet::of(U"0123456789abcefABCEF")), hex, hex, hex}),
                   r_.sequence({d, low_digit, hex, hex}),
                   r_.sequence({d, r_.chars(CharSet::of(U"89abAB")), hex, hex, r_.text("\\u"), d,
                                r_.chars(CharSet::of(U"cdefCDEF")), hex, hex})});
    char_ = r_.add_rule(
        "character",
        r_.any_of({r_.chars(plain_chars()),
                   r_.sequence({r_.text("\\"), r_.any_of({r_.chars(CharSet::of(U"\"\\/bfnrt")),
                                                          r_.sequence({r_.text("u"), unit})})})}));
    return r_.call(char_);
}

Expr JsonText::string() {
    if (string_ < 0) string_ = r_.add_rule("string", quoted(r_.repeat(any_char(), 0)));
    return r_.call(string_);
}

Expr JsonText::string(int min, int max) {
    if (min == 0 && max < min) return string();
    return quoted(r_.repeat(any_char(), min, max));
}

Expr JsonText::list(const char* open, Expr item, int min, int max, const char* close) {
    const bool limited = max >= min;
    std::vector<Expr> choices;
    if (min == 0) choices.push_back(r_.sequence({r_.text(open), space(), r_.text(close)}));
    if (!limited || max > 0)
        choices.push_back(r_.sequence({r_.text(open), space(), item,
                                       r_.repeat(r_.sequence({comma(), item}), std::max(min - 1, 0),
                                                 limited ? max - 1 : Rules::kNoLimit),
                                       space(), r_.text(close)}));
    return r_.any_of(std::move(choices));
}

Expr JsonText::value() {
    if (value_ < 0) {
        value_ = r_.add_rule("value");
        r_.define(value_, r_.any_of({string(), json_number(r_, {}), object(), array(),
                                     r_.one_of({"true", "false", "null"})}));
    }
    return r_.call(value_);
}

Expr JsonText::object() {
    if (object_ < 0) {
        object_ = r_.add_rule("object");
        r_.define(object_, list("{", member(string(), value()), 0, Rules::kNoLimit, "}"));
    }
    return r_.call(object_);
}

Expr JsonText::array() {
    if (array_ < 0) {
        array_ = r_.add_rule("array");
        r_.define(array_, list("[", value(), 0, Rules::kNoLimit, "]"));
    }
    return r_.call(array_);
}

Expr JsonText::string_char(const CharSet& set) {
    std::vector<Expr> choices;
    if (const CharSet plain = set.common(plain_chars()); !plain.empty())
        choices.push_back(r_.chars(plain));
    std::vector<std::string> escapes;
    for (const auto& [c, text] : std::map<char32_t, std::string>{{U'"', "\\\""},
                                                                 {U'\\', "\\\\"},
                                                                 {U'\b', "\\b"},
                                                                 {U'\f', "\\f"},
                                                                 {U'\n', "\\n"},
                                                                 {U'\r', "\\r"},
                                                                 {U'\t', "\\t"}})
        if (set.has(c)) escapes.push_back(text);
    for (char32_t c = 0; c < 0x20; ++c)
        if (set.has(c) && (c < 8 || c > 13 || c == 11))
            escapes.push_back(fmt::format("\\u{:04x}", static_cast<uint32_t>(c)));
    if (!escapes.empty()) choices.push_back(r_.one_of(escapes));
    return r_.any_of(std::move(choices));
}

// What may follow the characters that all of `texts` begin with, up to the closing quote.
Expr JsonText::except(const std::vector<std::u32string>& texts, size_t depth) {
    std::map<char32_t, std::vector<std::u32string>> next;
    bool ends = false;
    for (const auto& t : texts) {
        if (t.size() == depth)
            ends = true;
        else
            next[t[depth]].push_back(t);
    }
    CharSet taken;
    std::vector<Expr> choices;
    if (!ends) choices.push_back(r_.empty());
    for (const auto& [c, those] : next) {
        taken.add(c, c);
        choices.push_back(r_.sequence({string_char({c, c}), except(those, depth + 1)}));
    }
    choices.push_back(
        r_.sequence({string_char(taken.negated()), r_.repeat(string_char(CharSet::all()), 0)}));
    return r_.any_of(std::move(choices));
}

Expr JsonText::string_except(const std::vector<std::string>& texts) {
    std::vector<std::u32string> points;
    for (const std::string& t : texts) points.push_back(to_code_points(t));
    return quoted(except(points, 0));
}

}  // namespace exl3
