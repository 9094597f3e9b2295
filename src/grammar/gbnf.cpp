#include "grammar/gbnf.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"

namespace exl3 {
namespace {

constexpr int kDeepest = 200;

class Parser {
public:
    Parser(Rules& rules, std::string_view text) : rules_(rules), text_(to_code_points(text)) {}

    Rules::Rule whole() {
        for (blank(true); more(); blank(true)) rule();
        for (const auto& [name, rule] : names_)
            if (!rules_.defined(rule)) refuse("rule '" + name + "' is used and not defined");
        const auto root = names_.find("root");
        if (root == names_.end()) refuse("found no rule 'root', needed one");
        return root->second;
    }

private:
    [[noreturn]] void refuse(const std::string& what) const {
        size_t line = 1, column = 1;
        for (size_t i = 0; i < at_ && i < text_.size(); ++i)
            if (text_[i] == U'\n')
                ++line, column = 1;
            else
                ++column;
        throw Error(Errc::invalid_argument, {},
                    fmt::format("grammar, line {}, column {}: {}", line, column, what));
    }
    bool more() const { return at_ < text_.size(); }
    char32_t peek(size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : U'\0';
    }
    char32_t next(const char* wanted) {
        if (!more()) refuse(fmt::format("found the end, needed {}", wanted));
        return text_[at_++];
    }
    // Skips spaces and comments, and line ends where they may be.
    void blank(bool lines) {
        for (;;) {
            if (peek() == U'#')
                while (more() && peek() != U'\n') ++at_;
            const char32_t c = peek();
            if (!more() || !(c == U' ' || c == U'\t' || c == U'\r' || (lines && c == U'\n')))
                return;
            ++at_;
        }
    }
    static bool is_name(char32_t c) {
        return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= U'0' && c <= U'9') ||
               c == U'-' || c == U'_';
    }

    std::string name() {
        std::string out;
        while (is_name(peek())) append_utf8(out, text_[at_++]);
        if (out.empty()) refuse("needed the name of a rule");
        return out;
    }

    Rules::Rule rule_named(const std::string& name) {
        const auto it = names_.find(name);
        if (it != names_.end()) return it->second;
        return names_[name] = rules_.add_rule(name);
    }

    void rule() {
        const std::string who = name();
        blank(false);
        if (peek() != U':' || peek(1) != U':' || peek(2) != U'=') refuse("needed '::='");
        at_ += 3;
        blank(true);
        const Rules::Rule r = rule_named(who);
        if (rules_.defined(r)) refuse("rule '" + who + "' is defined twice");
        rules_.define(r, alternatives(0));
        if (more() && peek() != U'\n') refuse("needed the end of the rule");
    }

    Rules::Expr alternatives(int depth) {
        if (depth > kDeepest) refuse(fmt::format("groups nest deeper than {}", kDeepest));
        std::vector<Rules::Expr> choices = {sequence(depth)};
        while (bar(depth)) {
            blank(true);
            choices.push_back(sequence(depth));
        }
        return rules_.any_of(std::move(choices));
    }

    // A bar, also one that begins the next line.
    bool bar(int depth) {
        const size_t start = at_;
        blank(true);
        if (peek() == U'|') {
            ++at_;
            return true;
        }
        if (depth == 0) at_ = start;
        return false;
    }

    Rules::Expr sequence(int depth) {
        std::vector<Rules::Expr> parts;
        for (;;) {
            blank(depth > 0);
            const char32_t c = peek();
            if (c == U'"' || c == U'[' || c == U'.' || c == U'(' || is_name(c))
                parts.push_back(repeated(depth));
            else
                return rules_.sequence(std::move(parts));
        }
    }

    Rules::Expr repeated(int depth) {
        Rules::Expr e = item(depth);
        for (;; ++at_) {
            const char32_t c = peek();
            if (c == U'*')
                e = rules_.repeat(e, 0);
            else if (c == U'+')
                e = rules_.repeat(e, 1);
            else if (c == U'?')
                e = rules_.optional(e);
            else if (c == U'{')
                e = counted(e);
            else
                return e;
        }
    }

    // Leaves at_ on the closing brace.
    Rules::Expr counted(Rules::Expr e) {
        ++at_;
        const int min = number();
        int max = min;
        if (peek() == U',') {
            ++at_;
            max = peek() == U'}' ? Rules::kNoLimit : number();
            if (max != Rules::kNoLimit && max < min) refuse("needed min <= max");
        }
        if (peek() != U'}') refuse("needed '}'");
        return rules_.repeat(e, min, max);
    }

    int number() {
        int64_t n = -1;
        while (peek() >= U'0' && peek() <= U'9') {
            n = (n < 0 ? 0 : n) * 10 + static_cast<int64_t>(text_[at_++] - U'0');
            if (n > 1'000'000) refuse("repeats more than 1000000 times");
        }
        if (n < 0) refuse("needed a number");
        return static_cast<int>(n);
    }

    Rules::Expr item(int depth) {
        switch (peek()) {
            case U'"': return quoted();
            case U'[': return rules_.chars(set());
            case U'.': ++at_; return rules_.chars(CharSet::all());
            case U'(': {
                ++at_;
                const Rules::Expr e = alternatives(depth + 1);
                blank(true);
                if (next("')'") != U')') --at_, refuse("needed ')'");
                return e;
            }
            default: return rules_.call(rule_named(name()));
        }
    }

    Rules::Expr quoted() {
        ++at_;
        std::string bytes;
        while (peek() != U'"' || !more()) append_utf8(bytes, character("'\"'"));
        ++at_;
        return rules_.text(bytes);
    }

    CharSet set() {
        ++at_;
        const bool negated = peek() == U'^';
        if (negated) ++at_;
        CharSet all;
        while (peek() != U']' || !more()) {
            const char32_t first = character("']'");
            char32_t last = first;
            if (peek() == U'-' && peek(1) != U']') {
                ++at_;
                last = character("the end of the range");
                if (last < first) refuse("found a range that ends before it begins");
            }
            all.add(first, last);
        }
        ++at_;
        return negated ? all.negated() : all;
    }

    char32_t character(const char* wanted) {
        const char32_t c = next(wanted);
        if (c != U'\\') return c;
        const char32_t e = next("a character after \\");
        switch (e) {
            case U'n': return U'\n';
            case U'r': return U'\r';
            case U't': return U'\t';
            case U'x': return hex(2);
            case U'u': return hex(4);
            case U'U': return hex(8);
            case U'"':
            case U'\\':
            case U'[':
            case U']':
            case U'-':
            case U'^':
            case U'/': return e;
            default: --at_; refuse("found an escape that is not supported");
        }
    }

    char32_t hex(int digits) {
        uint64_t value = 0;
        for (int i = 0; i < digits; ++i) {
            const char32_t c = next("a hexadecimal digit");
            const char32_t lower = c | 0x20;
            const bool digit = c >= U'0' && c <= U'9';
            if (!digit && (lower < U'a' || lower > U'f'))
                --at_, refuse("needed a hexadecimal digit");
            value = value * 16 + (digit ? c - U'0' : lower - U'a' + 10);
        }
        if (value > kLastCodePoint) refuse("found a code point beyond 10FFFF");
        return static_cast<char32_t>(value);
    }

    Rules& rules_;
    const std::u32string text_;
    size_t at_ = 0;
    std::map<std::string, Rules::Rule> names_;
};

}  // namespace

Rules::Rule parse_gbnf(Rules& rules, std::string_view grammar) {
    return Parser(rules, grammar).whole();
}

}  // namespace exl3
