// Filters for markup, URLs and data formats.
#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_json.h"
#include "text/jinja_ops.h"
#include "text/jinja_pprint.h"
#include "text/jinja_text.h"

namespace exl3::jinja {
namespace {

Value escape(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "escape", args, "");
    return escape_html(rt, self);
}

Value forceescape(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "forceescape", args, "");
    return escape_html(rt, rt.string(to_text(rt, self)));
}

Value safe(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "safe", args, "");
    return rt.string(to_text(rt, self), true);
}

Value striptags(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "striptags", args, "");
    const std::string text = to_text(rt, self);
    rt.work(4 * text.size());
    return rt.string(strip_tags(text));
}

std::string quoted(std::string_view text, bool for_query) {
    constexpr char kHex[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        const bool letter =
            ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') || (byte >= '0' && byte <= '9');
        if (letter || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !for_query)) {
            out += c;
        } else if (c == ' ' && for_query) {
            out += '+';
        } else {
            out += '%';
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
        }
    }
    return out;
}

Value urlencode(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "urlencode", args, "");
    if (self.is_string() || !is_iterable(self)) {
        const std::string text = to_text(rt, self);
        rt.check_growth(text.size(), 3);
        return rt.string(quoted(text, false));
    }
    Value pairs = self;
    if (self.is(Kind::dict))
        pairs =
            Value::object(Kind::dict_view, rt.heap.make<DictView>(0, self, DictView::Part::items));
    std::string out;
    Cursor cursor(rt, pairs);
    for (Value pair; cursor.next(pair);) {
        const Value parts = make_list(rt, pair);
        const auto& items = parts.as<Sequence>().items;
        if (items.size() != 2) rt.fail(Fault::value, "urlencode needs pairs");
        if (!out.empty()) out += '&';
        const std::string name = to_text(rt, items[0]), value = to_text(rt, items[1]);
        rt.check_growth(out.size() + name.size() + value.size(), 3);
        out += quoted(name, true) + '=' + quoted(value, true);
    }
    return rt.string(std::move(out));
}

Value xmlattr(Runtime& rt, const Value& self, const Args& args) {
    const Bound b = bind(rt, "xmlattr", args, "autospace?");
    if (self.is_undefined()) fail_undefined(rt, self);
    if (!self.is(Kind::dict)) rt.fail(Fault::type, "xmlattr needs a mapping");
    std::string out;
    for (const Dict::Entry& e : self.as<Dict>().entries()) {
        if (e.value.is_none() || e.value.is_undefined()) continue;
        if (!out.empty()) out += ' ';
        out += escape_html(rt, e.key).as_text();
        out += "=\"";
        out += escape_html(rt, e.value).as_text();
        out += '"';
    }
    if (b.flag(rt, 0, true) && !out.empty()) out.insert(0, 1, ' ');
    return rt.string(std::move(out), rt.autoescape);
}

Value pprint(Runtime& rt, const Value& self, const Args& args) {
    bind(rt, "pprint", args, "");
    return rt.string(pretty(rt, self));
}

}  // namespace

std::span<const BuiltinEntry> html_filters() {
    static constexpr BuiltinEntry kTable[] = {
        {"e", escape},
        {"escape", escape},
        {"forceescape", forceescape},
        {"pprint", pprint},
        {"safe", safe},
        {"striptags", striptags},
        {"tojson", filter_tojson},
        {"urlencode", urlencode},
        {"xmlattr", xmlattr},
    };
    return kTable;
}

}  // namespace exl3::jinja
