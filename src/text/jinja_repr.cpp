#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

void append_escaped(std::string& out, char32_t c, char quote) {
    switch (c) {
        case '\\': out += "\\\\"; return;
        case '\n': out += "\\n"; return;
        case '\r': out += "\\r"; return;
        case '\t': out += "\\t"; return;
        default: break;
    }
    if (c == static_cast<char32_t>(quote)) {
        out += '\\';
        out += quote;
    } else if (is_printable(c)) {
        append_utf8(out, c);
    } else if (c < 0x100) {
        out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
        out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
        out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
}

void append_items(Runtime& rt, std::string& out, const std::vector<Value>& items) {
    bool first = true;
    for (const Value& item : items) {
        if (!first) out += ", ";
        first = false;
        append_repr(rt, out, item);
    }
}

void append_dict(Runtime& rt, std::string& out, const Dict& dict) {
    out += '{';
    bool first = true;
    for (const Dict::Entry& e : dict.entries()) {
        if (!first) out += ", ";
        first = false;
        append_repr(rt, out, e.key);
        out += ": ";
        append_repr(rt, out, e.value);
    }
    out += '}';
}

void append_view(Runtime& rt, std::string& out, const Value& v) {
    out += type_name(v);
    out += '(';
    append_repr(rt, out, make_list(rt, v));
    out += ')';
}

// A namespace can hold itself.
void append_namespace(Runtime& rt, std::string& out, Namespace& ns) {
    out += "<Namespace ";
    if (ns.printing) {
        out += "{...}";
    } else {
        ns.printing = true;
        append_repr(rt, out, ns.attributes);
        ns.printing = false;
    }
    out += '>';
}

std::string repr_of_range(const Range& r) {
    if (r.step == 1) return fmt::format("range({}, {})", r.start, r.stop);
    return fmt::format("range({}, {}, {})", r.start, r.stop, r.step);
}

std::string repr_of_function(const Function& f) {
    const std::string_view name = f.entry->name;
    if (name == "dict") return "<class 'dict'>";
    if (name == "namespace") return "<class 'jinja2.utils.Namespace'>";
    if (name == "cycler") return "<class 'jinja2.utils.Cycler'>";
    if (name == "joiner") return "<class 'jinja2.utils.Joiner'>";
    return fmt::format("<function {}>", name);
}

}  // namespace

const char* type_name(const Value& v) {
    switch (v.kind()) {
        case Kind::missing:
        case Kind::undefined: return "Undefined";
        case Kind::none: return "NoneType";
        case Kind::boolean: return "bool";
        case Kind::integer:
        case Kind::wide: return "int";
        case Kind::real: return "float";
        case Kind::string: return v.as<String>().markup ? "Markup" : "str";
        case Kind::list: return "list";
        case Kind::tuple: return "tuple";
        case Kind::dict: return "dict";
        case Kind::dict_view: {
            constexpr const char* kNames[] = {"dict_keys", "dict_values", "dict_items"};
            return kNames[static_cast<int>(v.as<DictView>().part)];
        }
        case Kind::range: return "range";
        case Kind::iterator: return v.as<Iterator>().type();
        case Kind::function: return "function";
        case Kind::method: return "builtin_function_or_method";
        case Kind::macro: return "Macro";
        case Kind::name_space: return "Namespace";
        case Kind::loop: return "LoopContext";
        case Kind::cycler: return "Cycler";
        case Kind::joiner: return "Joiner";
        case Kind::frame: break;
    }
    return "object";
}

const char* type_description(const Value& v) {
    switch (v.kind()) {
        case Kind::none: return "None";
        case Kind::boolean: return "bool object";
        case Kind::integer:
        case Kind::wide: return "int object";
        case Kind::real: return "float object";
        case Kind::string: return v.as<String>().markup ? "markupsafe.Markup object" : "str object";
        case Kind::list: return "list object";
        case Kind::tuple: return "tuple object";
        case Kind::dict: return "dict object";
        case Kind::dict_view: {
            constexpr const char* kNames[] = {"dict_keys object", "dict_values object",
                                              "dict_items object"};
            return kNames[static_cast<int>(v.as<DictView>().part)];
        }
        case Kind::range: return "range object";
        case Kind::iterator: return "generator object";
        case Kind::function: return "function object";
        case Kind::method: return "builtin_function_or_method object";
        case Kind::macro: return "jinja2.runtime.Macro object";
        case Kind::name_space: return "jinja2.utils.Namespace object";
        case Kind::loop: return "jinja2.runtime.LoopContext object";
        case Kind::cycler: return "jinja2.utils.Cycler object";
        case Kind::joiner: return "jinja2.utils.Joiner object";
        default: return "jinja2.runtime.Undefined object";
    }
}

std::string repr_of_text(std::string_view text) {
    const bool single = text.find('\'') != std::string_view::npos;
    const char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
    std::string out(1, quote);
    for (size_t at = 0; at < text.size();) append_escaped(out, next_code_point(text, at), quote);
    out += quote;
    return out;
}

std::string repr_of_real(double d) {
    if (std::isnan(d)) return "nan";
    if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
    char buffer[40];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
    const std::string_view text(buffer, static_cast<size_t>(end - buffer));
    const size_t e = text.find('e');
    int exponent = 0;
    std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), end, exponent);
    // Python writes positional notation for exponents from -4 to 15.
    if (exponent < -4 || exponent >= 16) return std::string(text);
    std::string digits(text.substr(0, e));
    const bool minus = digits[0] == '-';
    if (minus) digits.erase(0, 1);
    std::erase(digits, '.');
    if (exponent < 0) {
        digits.insert(0, "0." + std::string(static_cast<size_t>(-exponent) - 1, '0'));
    } else if (const size_t whole = static_cast<size_t>(exponent) + 1; digits.size() <= whole) {
        digits += std::string(whole - digits.size(), '0') + ".0";
    } else {
        digits.insert(whole, ".");
    }
    return minus ? "-" + digits : digits;
}

std::string decimal(Int i) {
    if (i == 0) return "0";
    const bool minus = i < 0;
    auto rest = minus ? -static_cast<unsigned __int128>(i) : static_cast<unsigned __int128>(i);
    std::string out;
    for (; rest > 0; rest /= 10) out += static_cast<char>('0' + static_cast<int>(rest % 10));
    if (minus) out += '-';
    std::reverse(out.begin(), out.end());
    return out;
}

void append_repr(Runtime& rt, std::string& out, const Value& v) {
    const Deeper deeper(rt);
    rt.step();
    rt.heap.check(out.size());
    switch (v.kind()) {
        case Kind::missing:
        case Kind::undefined: out += "Undefined"; break;
        case Kind::none: out += "None"; break;
        case Kind::boolean: out += v.as_bool() ? "True" : "False"; break;
        case Kind::integer: out += std::to_string(v.as_integer()); break;
        case Kind::wide: out += decimal(v.as_int()); break;
        case Kind::real: out += repr_of_real(v.as_real()); break;
        case Kind::string: {
            rt.work(v.as_text().size());
            rt.check_growth(v.as_text().size(), 4);  // "\x00" for one byte
            const std::string text = repr_of_text(v.as_text());
            out += v.as<String>().markup ? "Markup(" + text + ")" : text;
            break;
        }
        case Kind::list:
            out += '[';
            append_items(rt, out, v.as<Sequence>().items);
            out += ']';
            break;
        case Kind::tuple: {
            const auto& items = v.as<Sequence>().items;
            out += '(';
            append_items(rt, out, items);
            out += items.size() == 1 ? ",)" : ")";
            break;
        }
        case Kind::dict: append_dict(rt, out, v.as<Dict>()); break;
        case Kind::dict_view: append_view(rt, out, v); break;
        case Kind::range: out += repr_of_range(v.as<Range>()); break;
        case Kind::iterator: out += fmt::format("<{} object>", type_name(v)); break;
        case Kind::function: out += repr_of_function(v.as<Function>()); break;
        case Kind::method:
            out += fmt::format("<built-in method {} of {} object>", v.as<Method>().entry->name,
                               type_name(v.as<Method>().self));
            break;
        case Kind::macro: out += v.as<Callable>().describe(); break;
        case Kind::name_space: append_namespace(rt, out, v.as<Namespace>()); break;
        case Kind::loop: out += v.as<LoopObject>().describe(rt); break;
        case Kind::cycler: out += "<Cycler>"; break;
        case Kind::joiner: out += "<Joiner>"; break;
        case Kind::frame: break;
    }
}

void append_text(Runtime& rt, std::string& out, const Value& v) {
    if (v.is_string()) {
        rt.heap.check(out.size() + v.as_text().size());
        out += v.as_text();
    } else if (!v.is_undefined()) {
        append_repr(rt, out, v);
    }
}

std::string repr(Runtime& rt, const Value& v) {
    std::string out;
    append_repr(rt, out, v);
    return out;
}

std::string to_text(Runtime& rt, const Value& v) {
    std::string out;
    append_text(rt, out, v);
    return out;
}

Value soft_text(Runtime& rt, const Value& v) {
    return v.is_string() ? v : rt.string(to_text(rt, v));
}

Value escape_html(Runtime& rt, const Value& v) {
    if (v.is_string() && v.as<String>().markup) return v;
    const std::string text = to_text(rt, v);
    rt.check_growth(text.size(), 5);
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '\'': out += "&#39;"; break;
            case '"': out += "&#34;"; break;
            default: out += c;
        }
    }
    return rt.string(std::move(out), true);
}

}  // namespace exl3::jinja
