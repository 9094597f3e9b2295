#pragma once
#include <string>
#include <string_view>

#include "text/jinja_runtime.h"

/// What Python's operators and built-in functions do with values. Each fails as Python would.
namespace exl3::jinja {

enum class BinaryOp : uint8_t { add, sub, mul, div, floordiv, mod, pow };
enum class CompareOp : uint8_t { eq, ne, lt, le, gt, ge, in, not_in };

const char* type_name(const Value& v);         ///< "str", "NoneType"
const char* type_description(const Value& v);  ///< "str object", "None": what messages say

bool truthy(Runtime& rt, const Value& v);
bool equals(Runtime& rt, const Value& a, const Value& b);
bool identical(const Value& a, const Value& b);
bool less(Runtime& rt, const Value& a, const Value& b);
bool compare(Runtime& rt, CompareOp op, const Value& a, const Value& b);
bool contains(Runtime& rt, const Value& container, const Value& item);
/// len(); fails for values that have none.
size_t length_of(Runtime& rt, const Value& v);

Value binary(Runtime& rt, BinaryOp op, const Value& a, const Value& b);
Value negative(Runtime& rt, const Value& v);
Value positive(Runtime& rt, const Value& v);

/// a.name, by Jinja's rules: a method or property first, then the key.
Value get_attribute(Runtime& rt, const Value& v, const Value& name);
/// a[key]: the key or index first, then a method or property.
Value get_item(Runtime& rt, const Value& v, const Value& key);
/// getattr() alone, in the sandbox; missing when there is no such attribute.
Value own_attribute(Runtime& rt, const Value& v, const Value& name);
/// a[start:stop:step]; missing parts are Values of kind missing or none.
Value get_slice(Runtime& rt, const Value& v, const Value& start, const Value& stop,
                const Value& step);
/// Item `i` of a string, list, tuple or range of which it is known to exist.
Value item_at(Runtime& rt, const Value& v, size_t i);

/// Fails with the message of the undefined value `v`.
[[noreturn]] void fail_undefined(Runtime& rt, const Value& v);
std::string undefined_message(Runtime& rt, const Value& v);

/// str() and repr().
std::string to_text(Runtime& rt, const Value& v);
std::string repr(Runtime& rt, const Value& v);
void append_text(Runtime& rt, std::string& out, const Value& v);
void append_repr(Runtime& rt, std::string& out, const Value& v);
std::string repr_of_text(std::string_view text);
std::string repr_of_real(double d);
std::string decimal(Int i);
enum class Parsed : uint8_t { no, yes, too_big };
/// `s` of digits in `base` (0: from its prefix), as int() reads them: spaces around, underscores
/// between digits.
Parsed parse_int(std::string_view s, int base, Int& out);
/// As float() reads them.
bool parse_real(std::string_view s, double& out);

/// str(v) with & < > " ' replaced, unless v is markup already.
Value escape_html(Runtime& rt, const Value& v);
/// The value as a string: itself if it is one (markup stays markup), else str().
Value soft_text(Runtime& rt, const Value& v);

/// Walks an iterable as a for loop does. Fails on construction when the value is none.
class Cursor {
public:
    Cursor(Runtime& rt, Value source);
    bool next(Value& out);

private:
    Runtime& rt_;
    Value source_;
    size_t at_ = 0;
};

/// A lazy sequence that can be walked once: Python's generators and iterators.
struct Iterator : Object {
    virtual bool next(Runtime& rt, Value& out) = 0;
    virtual const char* type() const { return "generator"; }
};

bool is_iterable(const Value& v);
Value make_list(Runtime& rt, const Value& iterable);  ///< list()

}  // namespace exl3::jinja
