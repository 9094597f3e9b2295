#pragma once
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_runtime.h"

namespace exl3::jinja {

/// The arguments of one call, evaluated.
struct Args {
    std::vector<Value> positional;
    std::vector<std::pair<Value, Value>> named;  ///< name (a string) and value
};

/// A filter (self is the value in front of the bar), a test (answers with a boolean), a method
/// (self is the object) or a global function (self is missing).
using Builtin = Value (*)(Runtime& rt, const Value& self, const Args& args);

struct BuiltinEntry {
    std::string_view name;
    Builtin call = nullptr;
    bool changes = false;  ///< a method that would change its object: refused by the sandbox
};

/// A global function, or a type such as dict.
struct Function : Object {
    Function(const BuiltinEntry* e, Value s) : entry(e), self(std::move(s)) {}
    const BuiltinEntry* entry = nullptr;
    Value self;
};

struct Method : Object {
    Method(const BuiltinEntry* e, Value s) : entry(e), self(std::move(s)) {}
    const BuiltinEntry* entry = nullptr;
    Value self;
};

/// What calls back into the interpreter: a macro, a caller() or a block.
struct Callable : Object {
    virtual Value call(Runtime& rt, const Args& args) = 0;
    virtual Value attribute(Runtime& rt, std::string_view name) = 0;  ///< missing: has none
    virtual std::string describe() const = 0;                         ///< repr()
};

/// The `loop` variable.
struct LoopObject : Container {
    virtual Value attribute(Runtime& rt, std::string_view name) = 0;
    virtual size_t length(Runtime& rt) = 0;
    virtual Value call(Runtime& rt, const Args& args) = 0;
    virtual std::string describe(Runtime& rt) = 0;
};
inline size_t loop_length(Runtime& rt, const Value& v) {
    return v.as<LoopObject>().length(rt);
}

struct Cycler : Object {
    explicit Cycler(std::vector<Value> i) : items(std::move(i)) {}
    std::vector<Value> items;
    size_t position = 0;
};

struct Joiner : Object {
    explicit Joiner(Value s) : separator(std::move(s)) {}
    Value separator;
    bool used = false;
};

Value call(Runtime& rt, const Value& callee, const Args& args);

/// Arguments laid out by parameter: missing where an optional one was not given.
class Bound {
public:
    const Value& operator[](size_t i) const { return values_[i]; }
    /// The argument, or `otherwise` when it is missing.
    bool flag(Runtime& rt, size_t i, bool otherwise = false) const;
    Int integer(Runtime& rt, size_t i, Int otherwise) const;

private:
    friend Bound bind(Runtime&, const char*, const Args&, std::string_view);
    std::array<Value, 8> values_;
};

/// Matches arguments with parameters, written as in "old new count?": '?' marks an optional one,
/// a leading "/" says that none may be given by name. Fails as Python does: too many, too few,
/// unknown, given twice.
Bound bind(Runtime& rt, const char* function, const Args& args, std::string_view parameters);

/// An int argument, as __index__ gives it; fails naming its type otherwise.
Int to_index(Runtime& rt, const Value& v);
/// A string argument; fails "FUNCTION: expected str, got TYPE".
std::string_view to_str_argument(Runtime& rt, const char* function, const Value& v);

/// Tables of built-in names; null when there is none.
const BuiltinEntry* find_filter(std::string_view name);
const BuiltinEntry* find_test(std::string_view name);
const BuiltinEntry* find_global(std::string_view name);
const BuiltinEntry* find_method(Kind kind, std::string_view name);

/// Entries sorted by name.
const BuiltinEntry* find_entry(std::span<const BuiltinEntry> sorted, std::string_view name);
/// The tables that make up find_filter and find_method, one for each file.
std::span<const BuiltinEntry> text_filters();
std::span<const BuiltinEntry> html_filters();
std::span<const BuiltinEntry> number_filters();
std::span<const BuiltinEntry> sequence_filters();
std::span<const BuiltinEntry> selection_filters();
std::span<const BuiltinEntry> text_methods();
std::span<const BuiltinEntry> text_query_methods();
std::span<const BuiltinEntry> container_methods(Kind kind);

}  // namespace exl3::jinja
