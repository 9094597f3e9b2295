#include "grammar/lark.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/error.h"
#include "grammar/regex.h"

namespace exl3 {
namespace {

using Expr = Rules::Expr;

constexpr int kDeepest = 200;

// Terminals of Lark's `common` grammar.
const std::map<std::string, std::string>& common() {
    static const std::map<std::string, std::string> all = {
        {"DIGIT", "[0-9]"},
        {"HEXDIGIT", "[0-9a-fA-F]"},
        {"INT", "[0-9]+"},
        {"SIGNED_INT", "[+-]?[0-9]+"},
        {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
        {"FLOAT", "([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"},
        {"NUMBER", "([0-9]+\\.[0-9]*|\\.[0-9]+|[0-9]+)([eE][+-]?[0-9]+)?"},
        {"SIGNED_NUMBER", "[+-]?([0-9]+\\.[0-9]*|\\.[0-9]+|[0-9]+)([eE][+-]?[0-9]+)?"},
        {"LCASE_LETTER", "[a-z]"},
        {"UCASE_LETTER", "[A-Z]"},
        {"LETTER", "[a-zA-Z]"},
        {"WORD", "[a-zA-Z]+"},
        {"CNAME", "[_a-zA-Z][_a-zA-Z0-9]*"},
        {"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\[^\\n])*\""},
        {"WS", "[ \\t\\f\\r\\n]+"},
        {"WS_INLINE", "[ \\t]+"},
        {"CR", "\\r"},
        {"LF", "\\n"},
        {"NEWLINE", "(\\r?\\n)+"},
    };
    return all;
}

class Parser {
public:
    Parser(Rules& rules, std::string_view text) : rules_(rules), text_(text) {}

    Rules::Rule whole() {
        // What may stand between parts must be known before the first rule is read.
        between_ = rules_.add_rule("(ignored)");
        for (skip(true); more(); skip(true)) statement();
        std::vector<Expr> ignored;
        for (const std::string& name : ignored_) ignored.push_back(rules_.call(named(name)));
        rules_.define(between_,
                      ignored.empty() ? rules_.empty() : rules_.repeat(rules_.any_of(ignored), 0));
        for (const auto& [name, rule] : names_)
            if (!rules_.defined(rule)) refuse("'" + name + "' is used and not defined");
        const auto start = names_.find("start");
        if (start == names_.end()) refuse("found no rule 'start', needed one");
        return start->second;
    }

private:
    [[noreturn]] void refuse(const std::string& what) const {
        size_t line = 1, column = 1;
        for (size_t i = 0; i < at_ && i < text_.size(); ++i)
            if (text_[i] == '\n')
                ++line, column = 1;
            else
                ++column;
        throw Error(Errc::invalid_argument, {},
                    fmt::format("grammar, line {}, column {}: {}", line, column, what));
    }
    bool more() const { return at_ < text_.size(); }
    char peek(size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    bool take(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) return false;
        at_ += word.size();
        return true;
    }
    void skip(bool lines) {
        for (; more(); ++at_) {
            if (peek() == '/' && peek(1) == '/')
                while (more() && peek() != '\n') ++at_;
            const char c = peek();
            if (c != ' ' && c != '\t' && c != '\r' && !(lines && c == '\n')) return;
        }
    }
    static bool is_name(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    }
    static bool is_terminal(const std::string& name) {
        const size_t first = name.find_first_not_of('_');
        return first != std::string::npos && name[first] >= 'A' && name[first] <= 'Z';
    }
    std::string name() {
        std::string out;
        while (is_name(peek())) out += text_[at_++];
        if (out.empty()) refuse("needed a name");
        return out;
    }
    Rules::Rule named(const std::string& name) {
        const auto it = names_.find(name);
        return it != names_.end() ? it->second : names_[name] = rules_.add_rule(name);
    }

    void statement() {
        if (take("%ignore")) {
            skip(false);
            if (is_name(peek())) {
                ignored_.push_back(name());
            } else {
                const std::string own = fmt::format("(ignored {})", ignored_.size());
                rules_.define(named(own), alternatives(true, 0));
                ignored_.push_back(own);
            }
        } else if (take("%import")) {
            import();
        } else if (peek() == '%') {
            refuse("found a directive that is not supported");
        } else {
            definition();
        }
        skip(false);
        if (more() && peek() != '\n') refuse("needed the end of the line");
    }

    void import() {
        skip(false);
        if (!take("common.")) refuse("needed common.NAME, the one module there is");
        const std::string from = name();
        std::string as = from;
        skip(false);
        if (take("->")) {
            skip(false);
            as = name();
        }
        const auto it = common().find(from);
        if (it == common().end()) refuse("there is no common." + from);
        define(as, regex_expr(rules_, it->second, {}));
    }

    void define(const std::string& who, Expr e) {
        const Rules::Rule r = named(who);
        if (rules_.defined(r)) refuse("'" + who + "' is defined twice");
        rules_.define(r, e);
    }

    void definition() {
        while (peek() == '?' || peek() == '!') ++at_;  // these shape a parse tree, not the language
        const std::string who = name();
        if (take(".")) name();  // a priority
        skip(false);
        if (!take(":")) refuse("needed ':'");
        define(who, alternatives(is_terminal(who), 0));
    }

    Expr alternatives(bool terminal, int depth) {
        if (depth > kDeepest) refuse(fmt::format("groups nest deeper than {}", kDeepest));
        std::vector<Expr> choices = {sequence(terminal, depth)};
        for (;;) {
            const size_t here = at_;
            skip(true);
            if (!take("|")) {
                if (depth == 0) at_ = here;
                return rules_.any_of(std::move(choices));
            }
            choices.push_back(sequence(terminal, depth));
        }
    }

    Expr sequence(bool terminal, int depth) {
        std::vector<Expr> parts;
        for (;;) {
            skip(depth > 0);
            const char c = peek();
            if (c == '-' && peek(1) == '>') {
                at_ += 2;
                skip(false);
                name();
                continue;
            }
            if (c != '"' && c != '/' && c != '(' && c != '[' && !is_name(c)) break;
            // Terminals are one piece; between the parts of a rule there may be ignored text.
            if (!terminal && !parts.empty()) parts.push_back(rules_.call(between_));
            parts.push_back(repeated(terminal, depth));
        }
        return rules_.sequence(std::move(parts));
    }

    Expr again(Expr e, bool terminal, int min, int max) {
        if (terminal || (max >= 0 && max <= 1)) return rules_.repeat(e, min, max);
        const Expr more = rules_.sequence({rules_.call(between_), e});
        const Expr some = rules_.sequence(
            {e, rules_.repeat(more, min > 0 ? min - 1 : 0, max < 0 ? max : max - 1)});
        return min == 0 ? rules_.optional(some) : some;
    }

    Expr repeated(bool terminal, int depth) {
        Expr e = item(terminal, depth);
        for (;;) {
            if (take("*")) {
                e = again(e, terminal, 0, Rules::kNoLimit);
            } else if (take("+")) {
                e = again(e, terminal, 1, Rules::kNoLimit);
            } else if (take("?")) {
                e = rules_.optional(e);
            } else if (take("~")) {
                skip(false);
                const int min = number();
                const int max = take("..") ? number() : min;
                if (max < min) refuse("needed min <= max");
                e = max == 0 ? rules_.empty() : again(e, terminal, min, max);
            } else {
                return e;
            }
        }
    }

    int number() {
        int n = -1;
        while (peek() >= '0' && peek() <= '9') {
            n = (n < 0 ? 0 : n) * 10 + (text_[at_++] - '0');
            if (n > 1'000'000) refuse("repeats more than 1000000 times");
        }
        if (n < 0) refuse("needed a number");
        return n;
    }

    Expr item(bool terminal, int depth) {
        switch (peek()) {
            case '"': return quoted();
            case '/': return expression();
            case '(':
            case '[': {
                const bool optional = text_[at_++] == '[';
                const Expr e = alternatives(terminal, depth + 1);
                skip(true);
                if (!take(optional ? "]" : ")")) refuse(optional ? "needed ']'" : "needed ')'");
                return optional ? rules_.optional(e) : e;
            }
            default: return rules_.call(named(name()));
        }
    }

    std::string string() {
        std::string bytes;
        for (++at_; peek() != '"'; ++at_) {
            if (!more() || peek() == '\n') refuse("needed '\"'");
            if (peek() != '\\') {
                bytes += peek();
                continue;
            }
            ++at_;
            switch (peek()) {
                case 'n': bytes += '\n'; break;
                case 'r': bytes += '\r'; break;
                case 't': bytes += '\t'; break;
                case '"':
                case '\\':
                case '/': bytes += peek(); break;
                case 'x':
                case 'u': bytes += hex(peek() == 'x' ? 2 : 4); break;
                default: refuse("found an escape that is not supported");
            }
        }
        ++at_;
        return bytes;
    }

    // Leaves at_ on the last digit.
    std::string hex(size_t digits) {
        const std::string_view text = text_.substr(std::min(at_ + 1, text_.size()), digits);
        if (text.size() < digits ||
            text.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
            refuse("needed a hexadecimal digit");
        at_ += digits;
        std::string out;
        append_utf8(out, static_cast<char32_t>(std::stoul(std::string(text), nullptr, 16)));
        return out;
    }

    Expr quoted() {
        const std::string bytes = string();
        if (take("..")) {
            if (peek() != '"') refuse("needed the end of the range");
            const std::u32string first = to_code_points(bytes), last = to_code_points(string());
            if (first.size() != 1 || last.size() != 1 || last[0] < first[0])
                refuse("needed a range of two characters");
            return rules_.chars({first[0], last[0]});
        }
        if (peek() != 'i') return rules_.text(bytes);
        ++at_;
        std::vector<Expr> parts;
        for (const char32_t c : to_code_points(bytes))
            parts.push_back(rules_.chars(CharSet(c, c).any_case()));
        return rules_.sequence(std::move(parts));
    }

    Expr expression() {
        std::string pattern;
        for (++at_; peek() != '/'; ++at_) {
            if (!more() || peek() == '\n') refuse("needed '/'");
            if (peek() == '\\' && peek(1) == '/')
                ++at_;  // only here does it need one
            else if (peek() == '\\')
                pattern += text_[at_++];
            pattern += peek();
        }
        ++at_;
        bool any_case = false;
        for (; is_name(peek()); ++at_) {
            if (peek() == 'i')
                any_case = true;
            else if (peek() != 's' && peek() != 'u' && peek() != 'm')
                refuse("found a flag that is not supported");
        }
        RegexOptions options;
        if (any_case)
            options.chars = [](Rules& rules, const CharSet& set) {
                return rules.chars(set.any_case());
            };
        return regex_expr(rules_, pattern, options);
    }

    Rules& rules_;
    const std::string_view text_;
    size_t at_ = 0;
    Rules::Rule between_ = -1;
    std::map<std::string, Rules::Rule> names_;
    std::vector<std::string> ignored_;
};

}  // namespace

Rules::Rule parse_lark(Rules& rules, std::string_view grammar) {
    return Parser(rules, grammar).whole();
}

}  // namespace exl3
