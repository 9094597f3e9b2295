#include "grammar/regex.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include "base/error.h"

namespace exl3 {
namespace {

constexpr int kDeepest = 200;            // nested groups
constexpr int kMostRepeats = 1'000'000;  // in {m,n}

CharSet category(std::string_view name) {
    CharSet set;
    char32_t first = 0;
    bool inside = false;
    for (char32_t c = 0; c <= kLastCodePoint; ++c) {
        const std::string_view is = utf8proc_category_string(static_cast<utf8proc_int32_t>(c));
        const bool in = is.substr(0, name.size()) == name;
        if (in && !inside) first = c;
        if (!in && inside) set.add(first, c - 1);
        inside = in;
    }
    return inside ? set.add(first, kLastCodePoint) : set;
}

class Parser {
public:
    Parser(Rules& rules, std::string_view pattern, const RegexOptions& options)
        : rules_(rules), text_(to_code_points(pattern)), options_(options) {}

    Rules::Expr whole() {
        const Rules::Expr e = alternatives(0);
        if (at_ < text_.size()) refuse("found ')' that closes nothing");
        return e;
    }

private:
    [[noreturn]] void refuse(const std::string& what) const {
        throw Error(Errc::invalid_argument, {},
                    fmt::format("regular expression, character {}: {}", at_ + 1, what));
    }
    bool more() const { return at_ < text_.size(); }
    char32_t peek() const { return more() ? text_[at_] : U'\0'; }
    bool take(char32_t c) {
        if (!more() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    char32_t next(const char* wanted) {
        if (!more()) refuse(fmt::format("found the end, needed {}", wanted));
        return text_[at_++];
    }
    Rules::Expr chars(const CharSet& set) {
        return options_.chars ? options_.chars(rules_, set) : rules_.chars(set);
    }
    Rules::Expr anything() { return rules_.repeat(chars(CharSet::all()), 0); }

    Rules::Expr alternatives(int depth) {
        if (depth > kDeepest) refuse(fmt::format("groups nest deeper than {}", kDeepest));
        std::vector<Rules::Expr> choices = {alternative(depth)};
        while (take(U'|')) choices.push_back(alternative(depth));
        return rules_.any_of(std::move(choices));
    }

    Rules::Expr alternative(int depth) {
        std::vector<Rules::Expr> parts;
        // Anchors say something only where the whole pattern begins and ends.
        const bool outermost = depth == 0;
        bool from_start = false, to_end = false;
        while (outermost && take(U'^')) from_start = true;
        while (more() && peek() != U'|' && peek() != U')') {
            if (outermost && peek() == U'$') {
                const size_t here = at_;
                while (take(U'$')) {
                }
                if (more() && peek() != U'|') {
                    at_ = here;
                    refuse("found $ before the end, which nothing can match");
                }
                to_end = true;
                break;
            }
            parts.push_back(quantified(depth));
        }
        if (outermost && options_.search && !from_start) parts.insert(parts.begin(), anything());
        if (outermost && options_.search && !to_end) parts.push_back(anything());
        return rules_.sequence(std::move(parts));
    }

    Rules::Expr quantified(int depth) {
        Rules::Expr e = atom(depth);
        for (;;) {
            int min = 0, max = Rules::kNoLimit;
            if (take(U'*')) {
            } else if (take(U'+')) {
                min = 1;
            } else if (take(U'?')) {
                max = 1;
            } else if (peek() == U'{' && counts(min, max)) {
            } else {
                return e;
            }
            if (!take(U'?')) take(U'+');  // lazy and possessive ones match the same texts
            e = rules_.repeat(e, min, max);
        }
    }

    // "{2}", "{2,}", "{2,5}"; anything else in braces is text.
    bool counts(int& min, int& max) {
        const size_t start = at_;
        ++at_;
        const bool has_min = number(min);
        max = min;
        if (take(U',')) {
            max = Rules::kNoLimit;
            int limit = 0;
            if (number(limit)) {
                if (limit < min)
                    refuse(fmt::format("found {{{},{}}}, needed min <= max", min, limit));
                max = limit;
            }
        }
        if (has_min && take(U'}')) return true;
        at_ = start;
        min = 0, max = Rules::kNoLimit;
        return false;
    }

    bool number(int& out) {
        const size_t start = at_;
        int64_t n = 0;
        while (peek() >= U'0' && peek() <= U'9') {
            n = n * 10 + static_cast<int64_t>(text_[at_++] - U'0');
            if (n > kMostRepeats) refuse(fmt::format("repeats more than {} times", kMostRepeats));
        }
        out = static_cast<int>(n);
        return at_ > start;
    }

    Rules::Expr atom(int depth) {
        const char32_t c = next("a character");
        switch (c) {
            case U'(': return group(depth);
            case U'[': return chars(set());
            case U'.': return chars(CharSet::of(U"\n\r").negated());
            case U'\\': return chars(escape(false));
            case U'*':
            case U'+':
            case U'?': --at_; refuse("found a repetition of nothing");
            case U'^':
            case U'$': --at_; refuse("found ^ or $ inside, needed at the ends only");
            default: return chars({c, c});
        }
    }

    Rules::Expr group(int depth) {
        if (take(U'?')) {
            if (take(U':')) {
            } else if ((take(U'P'), take(U'<')) && peek() != U'=' && peek() != U'!') {
                while (next("> after the name of the group") != U'>') {
                }
            } else {
                refuse("found look-around or a flag, which are not supported");
            }
        }
        const Rules::Expr e = alternatives(depth + 1);
        if (!take(U')')) refuse("found the end, needed ')'");
        return e;
    }

    char32_t hex(int digits) {
        char32_t value = 0;
        for (int i = 0; i < digits; ++i) {
            const char32_t c = next("a hexadecimal digit");
            const int d = c >= U'0' && c <= U'9'   ? static_cast<int>(c - U'0')
                          : c >= U'a' && c <= U'f' ? static_cast<int>(c - U'a') + 10
                          : c >= U'A' && c <= U'F' ? static_cast<int>(c - U'A') + 10
                                                   : -1;
            if (d < 0) --at_, refuse("needed a hexadecimal digit");
            value = value * 16 + static_cast<char32_t>(d);
        }
        return value;
    }

    // What follows a backslash.
    CharSet escape(bool in_class) {
        const char32_t c = next("a character after \\");
        const auto one = [](char32_t x) { return CharSet(x, x); };
        switch (c) {
            case U'n': return one(U'\n');
            case U'r': return one(U'\r');
            case U't': return one(U'\t');
            case U'f': return one(U'\f');
            case U'v': return one(U'\v');
            case U'0': return one(0);
            case U'x': return one(peek() == U'{' ? braced() : hex(2));
            case U'u': return one(unicode());
            case U'p': return property();
            case U'P': return property().negated();
            case U'd':
            case U'w':
            case U's':
            case U'D':
            case U'W':
            case U'S': return class_of(c);
            case U'b':
                if (in_class) return one(U'\b');
                break;
            default: break;
        }
        if ((c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= U'1' && c <= U'9')) {
            --at_;
            refuse("found an escape that is not supported (back-references and \\b are not)");
        }
        return one(c);
    }

    char32_t braced() {
        take(U'{');
        const size_t start = at_;
        while (more() && peek() != U'}') ++at_;
        const auto digits = static_cast<int>(at_ - start);
        at_ = start;
        if (digits < 1 || digits > 6) refuse("needed 1 to 6 hexadecimal digits in braces");
        const char32_t c = hex(digits);
        if (!take(U'}')) refuse("needed '}'");
        if (c > kLastCodePoint) refuse("found a code point beyond 10FFFF");
        return c;
    }

    char32_t unicode() {
        if (peek() == U'{') return braced();
        const char32_t high = hex(4);
        if (high < 0xD800 || high > 0xDBFF || peek() != U'\\') return high;
        const size_t start = at_;
        ++at_;
        if (take(U'u')) {
            const char32_t low = hex(4);
            if (low >= 0xDC00 && low <= 0xDFFF)
                return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        }
        at_ = start;
        return high;
    }

    CharSet property() {
        std::string name;
        if (take(U'{')) {
            for (char32_t c; (c = next("'}'")) != U'}';) append_utf8(name, c);
        } else {
            append_utf8(name, next("a category"));
        }
        const CharSet set = name.size() <= 2 ? category(name) : CharSet();
        if (name.empty() || set.empty())
            refuse("found category '" + name + "', needed a general category such as L or Nd");
        return set;
    }

    // After '['.
    CharSet set() {
        const bool negated = take(U'^');
        CharSet all;
        for (bool first = true; first || peek() != U']'; first = false) {
            CharSet low = member();
            const bool single =
                low.ranges().size() == 1 && low.ranges()[0].first == low.ranges()[0].last;
            if (single && peek() == U'-' && at_ + 1 < text_.size() && text_[at_ + 1] != U']') {
                ++at_;
                const CharSet high = member();
                const char32_t from = low.ranges()[0].first;
                if (high.ranges().size() != 1 || high.ranges()[0].last < from ||
                    high.ranges()[0].first != high.ranges()[0].last)
                    refuse("found a range that ends before it begins");
                low = {from, high.ranges()[0].first};
            }
            all.add(low);
            if (!more()) refuse("found the end, needed ']'");
        }
        ++at_;
        return negated ? all.negated() : all;
    }

    CharSet member() {
        const char32_t c = next("']'");
        return c == U'\\' ? escape(true) : CharSet(c, c);
    }

    Rules& rules_;
    const std::u32string text_;
    const RegexOptions& options_;
    size_t at_ = 0;
};

}  // namespace

CharSet class_of(char32_t letter) {
    CharSet set;
    switch (letter) {
        case U'd':
        case U'D': set = {U'0', U'9'}; break;
        case U'w':
        case U'W': set.add(U'0', U'9').add(U'A', U'Z').add(U'a', U'z').add(U'_', U'_'); break;
        default: set = CharSet::of(U" \t\n\r\f\v"); break;
    }
    return letter < U'a' ? set.negated() : set;
}

Rules::Expr regex_expr(Rules& rules, std::string_view pattern, const RegexOptions& options) {
    return Parser(rules, pattern, options).whole();
}

}  // namespace exl3
