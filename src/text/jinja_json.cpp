#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja_dict.h"
#include "text/jinja_json.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

void append_json_text(std::string& out, std::string_view text, bool ensure_ascii) {
    out += '"';
    for (size_t at = 0; at < text.size();) {
        const size_t start = at;
        const auto c = static_cast<uint32_t>(next_code_point(text, at));
        switch (c) {
            case '"': out += "\\\""; continue;
            case '\\': out += "\\\\"; continue;
            case '\n': out += "\\n"; continue;
            case '\r': out += "\\r"; continue;
            case '\t': out += "\\t"; continue;
            case '\b': out += "\\b"; continue;
            case '\f': out += "\\f"; continue;
            default: break;
        }
        if (c < 0x20 || (ensure_ascii && c >= 0x7f && c < 0x10000)) {
            out += fmt::format("\\u{:04x}", c);
        } else if (ensure_ascii && c >= 0x10000) {
            const uint32_t rest = c - 0x10000;
            out +=
                fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
        } else {
            out += text.substr(start, at - start);
        }
    }
    out += '"';
}

std::string json_real(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return repr_of_real(d);
}

class Writer {
public:
    Writer(Runtime& rt, const JsonStyle& style) : rt_(rt), style_(style) {}
    std::string out;

    void write(const Value& v) {
        const Deeper deeper(rt_);
        rt_.step();
        rt_.heap.check(out.size());
        switch (v.kind()) {
            case Kind::none: out += "null"; break;
            case Kind::boolean: out += v.as_bool() ? "true" : "false"; break;
            case Kind::integer:
            case Kind::wide: out += decimal(v.as_int()); break;
            case Kind::real: out += json_real(v.as_real()); break;
            case Kind::string:
                rt_.work(v.as_text().size());
                rt_.check_growth(v.as_text().size(), 6);  // "\u0001" for one byte
                append_json_text(out, v.as_text(), style_.ensure_ascii);
                break;
            case Kind::list:
            case Kind::tuple: write_list(v.as<Sequence>().items); break;
            case Kind::dict: write_dict(v.as<Dict>()); break;
            default:
                rt_.fail(Fault::type,
                         fmt::format("Object of type {} is not JSON serializable", type_name(v)));
        }
    }

private:
    void new_line() {
        if (!style_.indent) return;
        rt_.check_size(static_cast<Int>(out.size()) +
                       static_cast<Int>(style_.indent->size()) * level_);
        out += '\n';
        for (int i = 0; i < level_; ++i) out += *style_.indent;
    }
    void open(char bracket) {
        out += bracket;
        ++level_;
        new_line();
    }
    void close(char bracket) {
        --level_;
        new_line();
        out += bracket;
    }
    void separate() {
        out += style_.item_separator;
        new_line();
    }
    void write_list(const std::vector<Value>& items) {
        if (items.empty()) {
            out += "[]";
            return;
        }
        open('[');
        for (size_t i = 0; i < items.size(); ++i) {
            if (i > 0) separate();
            write(items[i]);
        }
        close(']');
    }
    void write_dict(const Dict& dict) {
        if (dict.size() == 0) {
            out += "{}";
            return;
        }
        std::vector<const Dict::Entry*> entries;
        for (const Dict::Entry& e : dict.entries()) entries.push_back(&e);
        if (style_.sort_keys)
            std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
                return less(rt_, a->key, b->key);
            });
        open('{');
        for (size_t i = 0; i < entries.size(); ++i) {
            if (i > 0) separate();
            append_json_text(out, key_text(entries[i]->key), style_.ensure_ascii);
            out += style_.key_separator;
            write(entries[i]->value);
        }
        close('}');
    }
    std::string key_text(const Value& key) const {
        switch (key.kind()) {
            case Kind::string: return std::string(key.as_text());
            case Kind::none: return "null";
            case Kind::boolean: return key.as_bool() ? "true" : "false";
            case Kind::integer:
            case Kind::wide: return decimal(key.as_int());
            case Kind::real: return json_real(key.as_real());
            default:
                rt_.fail(Fault::type,
                         fmt::format("keys must be str, int, float, bool or None, not {}",
                                     type_name(key)));
        }
    }

    Runtime& rt_;
    const JsonStyle& style_;
    int level_ = 0;
};

}  // namespace

std::string to_json(Runtime& rt, const Value& v, const JsonStyle& style) {
    Writer writer(rt, style);
    writer.write(v);
    return std::move(writer.out);
}

// tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false), as transformers has
// it.
Value filter_tojson(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "tojson", args, "ensure_ascii? indent? separators? sort_keys?");
    JsonStyle style;
    style.ensure_ascii = b.flag(rt, 0);
    style.sort_keys = b.flag(rt, 3);
    const Value &indent = b[1], &separators = b[2];
    if (indent.is_string()) {
        style.indent = indent.as_text();
    } else if (!indent.missing() && !indent.is_none()) {
        const Int width = std::max<Int>(0, to_index(rt, indent));
        rt.check_size(width);
        style.indent = std::string(static_cast<size_t>(width), ' ');
    }
    if (style.indent) style.item_separator = ",";
    if (!separators.missing() && !separators.is_none()) {
        std::vector<Value> parts;
        Cursor cursor(rt, separators);
        for (Value part; parts.size() < 3 && cursor.next(part);) parts.push_back(part);
        if (parts.size() != 2)
            rt.fail(Fault::value, "tojson: separators needs an item and a key separator");
        style.item_separator = to_str_argument(rt, "tojson", parts[0]);
        style.key_separator = to_str_argument(rt, "tojson", parts[1]);
    }
    return rt.string(to_json(rt, self, style));
}

}  // namespace exl3::jinja
