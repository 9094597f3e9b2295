#include "text/jinja_format.h"

#include <fmt/format.h>

#include <cmath>

#include "text/jinja_dict.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

constexpr Int kMaxWidth = 1 << 28;

/// One pass over a %-format.
class Percent {
public:
    Percent(Runtime& rt, const Value& format, const Value& args)
        : rt_(rt), text_(format.as_text()), markup_(format.as<String>().markup), args_(args) {}

    std::string run() {
        std::string out;
        while (at_ < text_.size()) {
            const size_t percent = std::min(text_.find('%', at_), text_.size());
            out += text_.substr(at_, percent - at_);
            at_ = percent;
            if (at_ == text_.size()) break;
            ++at_;
            out += field();
            rt_.heap.check(out.size());
        }
        // Whatever has items passes for a mapping, of which not all must be used.
        const bool lenient = args_.is(Kind::list) || args_.is(Kind::dict) ||
                             args_.is(Kind::range) || args_.is_undefined();
        if (!lenient && used_ < count())
            rt_.fail(Fault::type, "not all arguments converted during string formatting");
        return out;
    }

private:
    size_t count() const { return args_.is(Kind::tuple) ? args_.as<Sequence>().items.size() : 1; }
    Value next_argument() {
        if (used_ >= count()) rt_.fail(Fault::type, "not enough arguments for format string");
        return args_.is(Kind::tuple) ? args_.as<Sequence>().items[used_++] : (++used_, args_);
    }
    char peek() const {
        if (at_ >= text_.size()) rt_.fail(Fault::value, "incomplete format");
        return text_[at_];
    }
    Value named_argument() {  // %(name)s
        size_t open = 1;
        const size_t start = ++at_;
        for (; open > 0; ++at_) {
            if (at_ >= text_.size()) rt_.fail(Fault::value, "incomplete format key");
            open += text_[at_] == '(';
            open -= text_[at_] == ')';
        }
        const std::string_view key = text_.substr(start, at_ - 1 - start);
        if (!args_.is(Kind::dict)) rt_.fail(Fault::type, "format requires a mapping");
        const Value* found = args_.as<Dict>().find(key);
        if (!found) rt_.fail(Fault::lookup, repr_of_text(key));
        used_ = 1;
        return *found;
    }
    int number() {
        Int n = 0;
        if (peek() == '*') {
            ++at_;
            const Value v = next_argument();
            if (!v.is_int()) rt_.fail(Fault::type, "* wants int");
            n = v.as_int();
        } else {
            while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
                n = std::min(n * 10 + (text_[at_++] - '0'), kMaxWidth + 1);
        }
        if (n > kMaxWidth || n < -kMaxWidth)
            rt_.fail(Fault::value, "the width or precision of the format is too large");
        return static_cast<int>(n);
    }
    std::string field();
    std::string convert(char type, const Value& v, FormatSpec& spec);

    Runtime& rt_;
    std::string_view text_;
    bool markup_;
    const Value& args_;
    size_t at_ = 0;
    size_t used_ = 0;
};

std::string Percent::field() {
    Value argument;
    if (peek() == '(') argument = named_argument();
    FormatSpec spec;
    spec.align = '>';
    bool zero = false;
    for (;; ++at_) {
        const char flag = peek();
        if (flag == '-')
            spec.align = '<';
        else if (flag == '+')
            spec.sign = '+';
        else if (flag == ' ')
            spec.sign = spec.sign == '+' ? '+' : ' ';
        else if (flag == '#')
            spec.alternate = true;
        else if (flag == '0')
            zero = true;
        else
            break;
    }
    spec.width = number();
    if (spec.width < 0) {
        spec.width = -spec.width;
        spec.align = '<';
    }
    if (peek() == '.') {
        ++at_;
        peek();
        spec.precision = std::max(0, number());
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    const char type = text_[at_];
    if (type == '%') {
        ++at_;
        return "%";
    }
    if (std::string_view("sracdiuoxXeEfFgG").find(type) == std::string_view::npos) {
        size_t after = at_;
        const auto c = static_cast<uint32_t>(next_code_point(text_, after));
        rt_.fail(Fault::value, fmt::format("unsupported format character '{}' (0x{:x}) at index {}",
                                           text_.substr(at_, after - at_), c,
                                           count_code_points(text_.substr(0, at_))));
    }
    ++at_;
    if (argument.missing()) argument = next_argument();
    if (zero && spec.align == '>' &&
        std::string_view("diuoxXeEfFgG").find(type) != std::string_view::npos) {
        spec.align = '=';
        spec.fill = "0";
    }
    return convert(type, argument, spec);
}

std::string Percent::convert(char type, const Value& v, FormatSpec& spec) {
    const auto text = [&](std::string s) {
        if (!markup_) return format_text(rt_, s, spec);
        // Markup formats its arguments escaped.
        return format_text(rt_, escape_html(rt_, rt_.string(std::move(s))).as_text(), spec);
    };
    switch (type) {
        case 's':
            if (markup_ && v.is_string())
                return format_text(rt_, escape_html(rt_, v).as_text(), spec);
            return text(to_text(rt_, v));
        case 'r': return text(repr(rt_, v));
        case 'a': return text(ascii_repr(rt_, v));
        case 'c': {
            std::string character;
            if (v.is_int() && v.as_int() >= 0 && v.as_int() <= 0x10ffff)
                append_utf8(character, static_cast<char32_t>(v.as_int()));
            else if (v.is_string() && v.as<String>().length == 1)
                character = v.as_text();
            else
                rt_.fail(v.is_int() ? Fault::overflow : Fault::type, "%c requires int or char");
            return text(character);
        }
        default: break;
    }
    if (v.is_undefined()) fail_undefined(rt_, v);
    if (!v.is_number())
        rt_.fail(Fault::type, fmt::format("%{} format: a real number is required, not {}",
                                          std::string(1, type), type_name(v)));
    spec.type = type;
    if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
        if (spec.precision > 100000) rt_.fail(Fault::value, "precision too large");
        return format_real(rt_, v.as_double(), spec);
    }
    Int i = 0;
    if (v.is_int()) {
        i = v.as_int();
    } else {
        const double d = v.as_real();
        if (type == 'o' || type == 'x' || type == 'X')
            rt_.fail(Fault::type, fmt::format("%{} format: an integer is required, not float",
                                              std::string(1, type)));
        if (!std::isfinite(d) || std::abs(d) >= 0x1p126)
            rt_.fail(Fault::overflow, "cannot convert float to integer");
        i = static_cast<Int>(d);
    }
    rt_.check_size(spec.precision);
    return format_int(rt_, i, spec);
}

/// One pass over a format with braces; specifications hold fields of their own.
class Braces {
public:
    Braces(Runtime& rt, bool markup, const Args& args) : rt_(rt), markup_(markup), args_(args) {}

    std::string run(std::string_view text, int depth) {
        if (depth < 0) rt_.fail(Fault::value, "Max string recursion exceeded");
        std::string out;
        for (size_t at = 0; at < text.size();) {
            const char c = text[at++];
            if (c != '{' && c != '}') {
                out += c;
            } else if (at < text.size() && text[at] == c) {
                out += c;
                ++at;
            } else if (c == '}') {
                rt_.fail(Fault::value, "Single '}' encountered in format string");
            } else {
                const size_t start = at;
                out += field(text.substr(start, field_end(text, at) - start), depth);
                rt_.heap.check(out.size());
            }
        }
        return out;
    }

private:
    // Moves `at` past the closing brace and returns where it stands.
    size_t field_end(std::string_view text, size_t& at) const {
        if (at >= text.size()) rt_.fail(Fault::value, "Single '{' encountered in format string");
        int open = 1;
        bool in_brackets = false;
        while (at < text.size()) {
            const char c = text[at++];
            if (c == '[' && open == 1) in_brackets = true;
            if (c == ']') in_brackets = false;
            if (in_brackets) continue;
            open += c == '{';
            open -= c == '}';
            if (open == 0) return at - 1;
        }
        rt_.fail(Fault::value, "expected '}' before end of string");
    }
    std::string field(std::string_view text, int depth) {
        // name [!conversion] [:specification]; a bracket may hold either sign.
        size_t end = 0;
        bool in_brackets = false;
        for (; end < text.size(); ++end) {
            if (text[end] == '[') in_brackets = true;
            if (text[end] == ']') in_brackets = false;
            if (!in_brackets && (text[end] == '!' || text[end] == ':')) break;
        }
        Value v = lookup(text.substr(0, end));
        std::string_view rest = text.substr(end);
        if (rest.starts_with('!')) {
            if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':'))
                rt_.fail(Fault::value, "expected ':' after conversion specifier");
            switch (rest[1]) {
                case 's': v = soft_text(rt_, v); break;
                case 'r': v = rt_.string(repr(rt_, v)); break;
                case 'a': v = rt_.string(ascii_repr(rt_, v)); break;
                default:
                    rt_.fail(Fault::value,
                             fmt::format("Unknown conversion specifier '{}'", rest[1]));
            }
            rest.remove_prefix(2);
        }
        if (!rest.empty()) rest.remove_prefix(1);
        const std::string spec = run(rest, depth - 1);
        if (markup_ && v.is_string() && v.as<String>().markup && spec.empty())
            return std::string(v.as_text());
        std::string out = format_value(rt_, v, spec);
        return markup_ ? std::string(escape_html(rt_, rt_.string(std::move(out))).as_text()) : out;
    }
    static bool all_digits(std::string_view s) {
        return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos;
    }
    Value index_or_name(std::string_view s) {
        Int i = 0;
        if (all_digits(s) && parse_int(s, 10, i) == Parsed::yes) return rt_.integer(i);
        return rt_.string(s);
    }
    Value lookup(std::string_view name) {
        const size_t end = std::min(name.find_first_of(".["), name.size());
        Value v = argument(name.substr(0, end), end == name.size());
        for (name.remove_prefix(end); !name.empty();) {
            if (name[0] == '.') {
                const size_t stop = std::min(name.find_first_of(".[", 1), name.size());
                if (stop == 1) rt_.fail(Fault::value, "Empty attribute in format string");
                v = get_attribute(rt_, v, rt_.string(name.substr(1, stop - 1)));
                name.remove_prefix(stop);
            } else {
                const size_t close = name.find(']');
                if (name[0] != '[' || close == std::string_view::npos)
                    rt_.fail(Fault::value, "Missing ']' in format string");
                if (close == 1) rt_.fail(Fault::value, "Empty attribute in format string");
                v = get_item(rt_, v, index_or_name(name.substr(1, close - 1)));
                name.remove_prefix(close + 1);
                if (!name.empty() && name[0] != '.' && name[0] != '[')
                    rt_.fail(Fault::value,
                             "Only '.' or '[' may follow ']' in format field specifier");
            }
        }
        return v;
    }
    // The argument called `name`, by which fields are numbered if that is the `whole` field.
    Value argument(std::string_view name, bool whole) {
        if (whole ? !name.empty() && !all_digits(name) : !all_digits(name)) {
            for (const auto& [key, value] : args_.named)
                if (key.as_text() == name) return value;
            rt_.fail(Fault::lookup, repr_of_text(name));
        }
        const bool automatic = name.empty();
        if (automatic ? next_ < 0 : next_ > 0 && whole)
            rt_.fail(Fault::value, automatic ? "cannot switch from manual field specification to "
                                               "automatic field numbering"
                                             : "cannot switch from automatic field numbering to "
                                               "manual field specification");
        Int index = next_;
        if (automatic)
            ++next_;
        else if (whole)
            next_ = -1;
        if (!automatic && parse_int(name, 10, index) != Parsed::yes) index = -1;
        if (index < 0 || index >= static_cast<Int>(args_.positional.size()))
            rt_.fail(Fault::lookup,
                     fmt::format("Replacement index {} out of range for positional args tuple",
                                 decimal(index)));
        return args_.positional[static_cast<size_t>(index)];
    }

    Runtime& rt_;
    bool markup_;
    const Args& args_;
    int64_t next_ = 0;  // the next automatic index; -1 once an index was written out
};

}  // namespace

Value format_percent(Runtime& rt, const Value& format, const Value& args) {
    rt.work(format.as_text().size());
    return rt.string(Percent(rt, format, args).run(), format.as<String>().markup);
}

Value format_braces(Runtime& rt, const Value& format, const Args& args) {
    rt.work(format.as_text().size());
    const bool markup = format.as<String>().markup;
    return rt.string(Braces(rt, markup, args).run(format.as_text(), 2), markup);
}

}  // namespace exl3::jinja
