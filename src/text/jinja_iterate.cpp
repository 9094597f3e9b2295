#include <fmt/format.h>

#include "text/jinja_call.h"
#include "text/jinja_dict.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {

bool is_iterable(const Value& v) {
    switch (v.kind()) {
        case Kind::undefined:
        case Kind::string:
        case Kind::list:
        case Kind::tuple:
        case Kind::dict:
        case Kind::dict_view:
        case Kind::range:
        case Kind::iterator: return true;
        default: return false;
    }
}

Cursor::Cursor(Runtime& rt, Value source) : rt_(rt), source_(std::move(source)) {
    if (!is_iterable(source_))
        rt.fail(Fault::type, fmt::format("'{}' object is not iterable", type_name(source_)));
}

bool Cursor::next(Value& out) {
    rt_.step();
    switch (source_.kind()) {
        case Kind::list:
        case Kind::tuple: {
            const auto& items = source_.as<Sequence>().items;
            if (at_ >= items.size()) return false;
            out = items[at_++];
            return true;
        }
        case Kind::dict: {
            const auto& entries = source_.as<Dict>().entries();
            if (at_ >= entries.size()) return false;
            out = entries[at_++].key;
            return true;
        }
        case Kind::dict_view: {
            const auto& view = source_.as<DictView>();
            const auto& entries = view.dict.as<Dict>().entries();
            if (at_ >= entries.size()) return false;
            const Dict::Entry& e = entries[at_++];
            switch (view.part) {
                case DictView::Part::keys: out = e.key; break;
                case DictView::Part::values: out = e.value; break;
                case DictView::Part::items: out = rt_.tuple({e.key, e.value}); break;
            }
            return true;
        }
        case Kind::string: {
            const auto& s = source_.as<String>();
            if (at_ >= s.text.size()) return false;
            const size_t start = at_;
            next_code_point(s.text, at_);
            out = rt_.string(s.text.substr(start, at_ - start));
            return true;
        }
        case Kind::range: {
            const auto& r = source_.as<Range>();
            if (static_cast<int64_t>(at_) >= r.length()) return false;
            out = Value::integer(r.at(static_cast<int64_t>(at_++)));
            return true;
        }
        case Kind::iterator: return source_.as<Iterator>().next(rt_, out);
        default: return false;
    }
}

Value make_list(Runtime& rt, const Value& iterable) {
    ListBuilder out(rt);
    Cursor cursor(rt, iterable);
    for (Value v; cursor.next(v);) out.push(std::move(v));
    return out.finish();
}

}  // namespace exl3::jinja
