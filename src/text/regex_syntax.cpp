#include "text/regex_syntax.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/unicode.h"

namespace exl3::text {
namespace {

// Bodies of PCRE2 classes. Its own \s includes U+180E and its \w leaves out marks.
constexpr std::string_view kSpaceBody = R"(\t-\r\x{85}\p{Z})";
constexpr std::string_view kWordBody = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// Outside classes Oniguruma's \w and \b also take the raised digits and fractions of Latin-1.
constexpr std::string_view kBareWordBody =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr std::string_view kHexBody = "0-9A-Fa-f";
constexpr int kMaxClassDepth = 50;

constexpr std::pair<std::string_view, std::string_view> kProperties[] = {
    {"letter", R"(\p{L})"},
    {"uppercaseletter", R"(\p{Lu})"},
    {"lowercaseletter", R"(\p{Ll})"},
    {"titlecaseletter", R"(\p{Lt})"},
    {"modifierletter", R"(\p{Lm})"},
    {"otherletter", R"(\p{Lo})"},
    {"casedletter", R"(\p{L&})"},
    {"lc", R"(\p{L&})"},
    {"mark", R"(\p{M})"},
    {"combiningmark", R"(\p{M})"},
    {"nonspacingmark", R"(\p{Mn})"},
    {"spacingmark", R"(\p{Mc})"},
    {"enclosingmark", R"(\p{Me})"},
    {"number", R"(\p{N})"},
    {"decimalnumber", R"(\p{Nd})"},
    {"letternumber", R"(\p{Nl})"},
    {"othernumber", R"(\p{No})"},
    {"punctuation", R"(\p{P})"},
    {"connectorpunctuation", R"(\p{Pc})"},
    {"dashpunctuation", R"(\p{Pd})"},
    {"openpunctuation", R"(\p{Ps})"},
    {"closepunctuation", R"(\p{Pe})"},
    {"initialpunctuation", R"(\p{Pi})"},
    {"finalpunctuation", R"(\p{Pf})"},
    {"otherpunctuation", R"(\p{Po})"},
    {"symbol", R"(\p{S})"},
    {"mathsymbol", R"(\p{Sm})"},
    {"currencysymbol", R"(\p{Sc})"},
    {"modifiersymbol", R"(\p{Sk})"},
    {"othersymbol", R"(\p{So})"},
    {"separator", R"(\p{Z})"},
    {"spaceseparator", R"(\p{Zs})"},
    {"lineseparator", R"(\p{Zl})"},
    {"paragraphseparator", R"(\p{Zp})"},
    {"other", R"(\p{C})"},
    {"control", R"(\p{Cc})"},
    {"format", R"(\p{Cf})"},
    {"surrogate", R"(\p{Cs})"},
    {"privateuse", R"(\p{Co})"},
    {"unassigned", R"(\p{Cn})"},
    {"any", R"(\x{0}-\x{10FFFF})"},
    {"alpha", R"(\p{Alphabetic})"},
    {"digit", R"(\p{Nd})"},
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"upper", R"(\p{Uppercase})"},
    {"lower", R"(\p{Lowercase})"},
    {"space", kSpaceBody},
    {"whitespace", kSpaceBody},
    {"punct", R"(\p{P})"},
    {"cntrl", R"(\p{Cc})"},
    {"word", kWordBody},
    {"xdigit", kHexBody},
    {"blank", R"(\t\p{Zs})"},
    {"ascii", R"(\x{0}-\x{7F})"},
    {"graph", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co})"},
    {"print", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Zs})"},
};

bool compiles(const std::string& pattern) {
    int error = 0;
    size_t at = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                     PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
    pcre2_code_free(code);
    return code != nullptr;
}

class Translator {
public:
    explicit Translator(std::string_view pattern) : in_(pattern) {}

    std::string run() {
        std::vector<size_t> groups;
        while (at_ < in_.size()) {
            const size_t atom = out_.size();
            const char c = in_[at_];
            if (c == '(') {
                group_head(groups, atom);
            } else if (c == ')') {
                if (groups.empty()) fail("has an unmatched ')'");
                ++at_;
                out_ += ')';
                const size_t start = groups.back();
                groups.pop_back();
                if (start != kNoAtom) quantifiers(start);
            } else if (c == '|' || c == '^' || c == '$') {
                out_ += c;
                ++at_;
            } else {
                one_atom();
                quantifiers(atom);
            }
        }
        if (!groups.empty()) fail("has an unmatched '('");
        return std::move(out_);
    }

private:
    static constexpr size_t kNoAtom = static_cast<size_t>(-1);

    [[noreturn]] void fail(std::string_view what) const {
        throw Error(Errc::unsupported, {},
                    fmt::format("regular expression '{}' {} (at character {})", in_, what, at_));
    }
    bool next_is(std::string_view s) const { return in_.substr(at_, s.size()) == s; }
    bool take(std::string_view s) {
        if (!next_is(s)) return false;
        at_ += s.size();
        return true;
    }

    // "(" and what follows it up to the first item of the group.
    void group_head(std::vector<size_t>& groups, size_t atom) {
        if (take("(?#")) {
            const size_t close = in_.find(')', at_);
            if (close == in_.npos) fail("has an unclosed comment");
            at_ = close + 1;
            return;
        }
        ++at_;
        out_ += '(';
        if (!take("?")) {
            groups.push_back(atom);
            return;
        }
        if (next_is("~")) fail("uses an absence operator");
        out_ += '?';
        for (const std::string_view head : {":", "=", "!", ">", "<=", "<!"})
            if (take(head)) {
                out_ += head;
                groups.push_back(atom);
                return;
            }
        if (take("<") || take("P<")) {
            const size_t close = in_.find('>', at_);
            if (close == in_.npos) fail("has an unclosed group name");
            out_ += '<';
            out_ += in_.substr(at_, close + 1 - at_);
            at_ = close + 1;
            groups.push_back(atom);
            return;
        }
        while (at_ < in_.size() &&
               (std::isalpha(static_cast<uint8_t>(in_[at_])) || in_[at_] == '-')) {
            // Ruby's m is the dot that matches newlines; there is no switch for line anchors.
            const char c = in_[at_++];
            if (std::string_view("imx-").find(c) == std::string_view::npos)
                fail("has an unknown group");
            out_ += c == 'm' ? 's' : c;
        }
        if (take(":")) {
            out_ += ':';
            groups.push_back(atom);
        } else if (take(")")) {
            out_ += ')';  // holds to the end of the enclosing group, as in PCRE2
        } else {
            fail("has an unknown group");
        }
    }

    void one_atom() {
        const char c = in_[at_];
        if (c == '[') {
            out_ += char_class(0);
        } else if (c == '\\') {
            escape_outside();
        } else if (c == '{' && !interval()) {
            out_ += "\\{";
            ++at_;
        } else {
            const size_t length = std::min(utf8_length(c), in_.size() - at_);
            out_ += in_.substr(at_, length);
            at_ += length;
        }
    }

    struct Interval {
        std::string text;
        size_t bytes;
    };
    std::optional<Interval> interval() const {
        size_t i = at_ + 1;
        std::string low, high;
        const auto digits = [&](std::string& to) {
            while (i < in_.size() && std::isdigit(static_cast<uint8_t>(in_[i]))) to += in_[i++];
        };
        digits(low);
        bool comma = false;
        if (i < in_.size() && in_[i] == ',') comma = true, ++i, digits(high);
        if (i >= in_.size() || in_[i] != '}' || (low.empty() && high.empty())) return std::nullopt;
        const std::string text =
            comma ? fmt::format("{{{},{}}}", low.empty() ? "0" : low, high) : "{" + low + "}";
        return Interval{text, i + 1 - at_};
    }

    void quantifiers(size_t atom) {
        for (bool first = true; at_ < in_.size(); first = false) {
            const char c = in_[at_];
            const auto range = c == '{' ? interval() : std::nullopt;
            if (c != '*' && c != '+' && c != '?' && !range) return;
            if (!first) {  // a quantified item, quantified again
                out_.insert(atom, "(?:");
                out_ += ')';
            }
            if (range) {
                out_ += range->text;
                at_ += range->bytes;
                continue;  // a + or ? here is a quantifier of its own
            }
            out_ += c;
            ++at_;
            if (take("?"))
                out_ += '?';
            else if (take("+"))
                out_ += '+';
        }
    }

    // The hexadecimal digits of \xHH, \uHHHH and \x{...}, whose letter has been read.
    std::string hex(size_t at_most) {
        std::string digits;
        const bool braces = take("{");
        while (at_ < in_.size() && std::isxdigit(static_cast<uint8_t>(in_[at_])) &&
               digits.size() < (braces ? 8 : at_most))
            digits += in_[at_++];
        if (braces && !take("}")) fail("has an unclosed escape");
        if (digits.empty()) fail("has an escape without digits");
        return "\\x{" + digits + "}";
    }

    // \p{Name}, \P{Name}, \p{^Name} with the letter read: the class body and whether it is negated.
    std::pair<std::string, bool> property(bool negated) {
        std::string name;
        if (take("{")) {
            if (take("^")) negated = !negated;
            const size_t close = in_.find('}', at_);
            if (close == in_.npos) fail("has an unclosed property");
            name = in_.substr(at_, close - at_);
            at_ = close + 1;
        } else if (at_ < in_.size()) {
            name = in_[at_++];
        }
        return {property_body(name), negated};
    }

    std::string property_body(std::string_view name) const {
        std::string plain;
        for (const char c : name)
            if (std::isalnum(static_cast<uint8_t>(c)))
                plain += static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
            else if (c != '_' && c != ' ' && c != '-')
                fail(fmt::format("names the unknown property '{}'", name));
        for (const auto& [known, body] : kProperties)
            if (known == plain) return std::string(body);
        if (plain.size() <= 2 && !plain.empty())
            plain[0] = static_cast<char>(std::toupper(plain[0]));
        // A script is the script itself, not its extensions, which PCRE2 would add by default.
        for (const std::string& body : {"\\p{sc:" + plain + "}", "\\p{" + plain + "}"})
            if (compiles(body)) return body;
        fail(fmt::format("names the unknown property '{}'", name));
    }

    // Escapes that stand for a set of characters: body, negated. Empty: not one of them.
    std::pair<std::string, bool> set_escape(char c) {
        switch (c) {
            case 's': return {std::string(kSpaceBody), false};
            case 'S': return {std::string(kSpaceBody), true};
            case 'w': return {std::string(kWordBody), false};
            case 'W': return {std::string(kWordBody), true};
            case 'd': return {"\\p{Nd}", false};
            case 'D': return {"\\p{Nd}", true};
            case 'h': return {std::string(kHexBody), false};
            case 'H': return {std::string(kHexBody), true};
            case 'p': return property(false);
            case 'P': return property(true);
            default: return {};
        }
    }

    // A single character written as an escape, its letter read.
    std::string character_escape(char c) {
        switch (c) {
            case 'x': return hex(2);
            case 'u': return hex(4);
            case 't': return "\\t";
            case 'n': return "\\n";
            case 'r': return "\\r";
            case 'f': return "\\f";
            case 'e': return "\\e";
            case 'a': return "\\a";
            case 'v': return "\\x0B";
            case '0': return "\\0";
            default: break;
        }
        if (std::isalnum(static_cast<uint8_t>(c)))
            fail(fmt::format("uses the unknown escape '\\{}'", c));
        if (static_cast<uint8_t>(c) < 0x80) return {'\\', c};
        return std::string(1, c);  // first byte of a longer character, the rest follows as it is
    }

    char escape_letter() {
        if (++at_ >= in_.size()) fail("ends in a backslash");
        return in_[at_++];
    }

    void escape_outside() {
        const char c = escape_letter();
        if (c == 'w' || c == 'W') {
            out_ += c == 'w' ? "[" : "[^";
            out_ += kBareWordBody;
            out_ += ']';
            return;
        }
        if (const auto [body, negated] = set_escape(c); !body.empty()) {
            out_ += (negated ? "[^" : "[") + body + "]";
            return;
        }
        if (c == 'b' || c == 'B') {
            const char* edge = c == 'b' ? "(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))"
                                        : "(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))";
            out_ += fmt::format(fmt::runtime(edge), kBareWordBody);
            return;
        }
        if (std::string_view("AzZGKRXk123456789").find(c) != std::string_view::npos) {
            out_ += '\\';
            out_ += c;
            return;
        }
        out_ += character_escape(c);
        while (at_ < in_.size() && (static_cast<uint8_t>(in_[at_]) & 0xC0) == 0x80)
            out_ += in_[at_++];
    }

    // One operand of && inside a class.
    struct Term {
        std::string body;                      // of a plain class
        std::vector<std::string> expressions;  // each matches one character of the union
        std::string text() const {
            std::vector<std::string> all = expressions;
            if (!body.empty()) all.insert(all.begin(), "[" + body + "]");
            if (all.empty()) return "(?!)";
            return all.size() == 1 ? all[0] : fmt::format("(?:{})", fmt::join(all, "|"));
        }
    };

    // [...] as an expression that matches exactly one character.
    std::string char_class(int depth) {
        if (depth > kMaxClassDepth) fail("nests classes too deeply");
        ++at_;
        const bool negated = take("^");
        std::vector<Term> terms(1);
        for (bool first = true;; first = false) {
            if (at_ >= in_.size()) fail("has an unclosed class");
            if (in_[at_] == ']' && !first) break;
            if (take("&&"))
                terms.emplace_back();
            else
                class_item(terms.back(), depth);
        }
        ++at_;
        if (terms.size() == 1 && terms[0].expressions.empty())
            return (negated ? "[^" : "[") + terms[0].body + "]";
        std::string all;
        for (size_t i = 0; i + 1 < terms.size(); ++i) all += "(?=" + terms[i].text() + ")";
        all += terms.back().text();
        return negated ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
    }

    void class_item(Term& term, int depth) {
        const char c = in_[at_];
        if (c == '[') {
            if (next_is("[:") && posix_bracket(term)) return;
            term.expressions.push_back(char_class(depth + 1));
            return;
        }
        if (c == '\\' && at_ + 1 < in_.size()) {
            const size_t back = at_;
            const char letter = escape_letter();
            if (const auto [body, negated] = set_escape(letter); !body.empty()) {
                if (negated)
                    term.expressions.push_back("[^" + body + "]");
                else
                    term.body += body;
                return;
            }
            at_ = back;
        }
        term.body += class_character();
        // A range, unless the hyphen is the last character or a set follows.
        if (next_is("-") && at_ + 1 < in_.size() && in_[at_ + 1] != ']' && in_[at_ + 1] != '[') {
            const size_t back = at_++;
            if (in_[at_] == '\\' && at_ + 1 < in_.size() &&
                std::string_view("sSwWdDhHpP").find(in_[at_ + 1]) != std::string_view::npos) {
                at_ = back + 1;
                term.body += "\\-";
                return;
            }
            term.body += '-' + class_character();
        }
    }

    std::string class_character() {
        std::string text;
        if (in_[at_] == '\\') {
            const char c = escape_letter();
            text = c == 'b' ? "\\x08" : character_escape(c);
        } else {
            const char c = in_[at_++];
            if (std::string_view("[]^-\\").find(c) != std::string_view::npos) text += '\\';
            text += c;
        }
        while (at_ < in_.size() && (static_cast<uint8_t>(in_[at_]) & 0xC0) == 0x80)
            text += in_[at_++];
        return text;
    }

    bool posix_bracket(Term& term) {
        const size_t close = in_.find(":]", at_ + 2);
        if (close == in_.npos) return false;
        std::string_view name = in_.substr(at_ + 2, close - at_ - 2);
        const bool negated = !name.empty() && name[0] == '^';
        if (negated) name.remove_prefix(1);
        for (const char c : name)
            if (!std::isalpha(static_cast<uint8_t>(c))) return false;
        // The bracket has the symbols too, the property of this name does not.
        const std::string body = name == "punct" ? R"(\p{P}\p{S})" : property_body(name);
        if (negated)
            term.expressions.push_back("[^" + body + "]");
        else
            term.body += body;
        at_ = close + 2;
        return true;
    }

    std::string_view in_;
    size_t at_ = 0;
    std::string out_;
};

}  // namespace

std::string translate_regex(std::string_view pattern) {
    return Translator(pattern).run();
}

}  // namespace exl3::text
