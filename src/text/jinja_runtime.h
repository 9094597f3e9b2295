#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja.h"
#include "text/jinja_value.h"

namespace exl3::jinja {

/// A place in the source, counted from 1; columns are code points. 0: unknown.
struct Position {
    uint32_t line = 0;
    uint32_t column = 0;
};

/// What kind of Python or Jinja exception a failure stands for.
enum class Fault : uint8_t {
    syntax,
    type,
    value,
    lookup,
    overflow,
    zero_division,
    undefined,
    security,
    runtime,
    raised,  ///< the template called raise_exception
    limit,
    unsupported
};

/// The exception inside the engine; parse and render turn it into an Error.
struct Failure {
    Fault fault = Fault::runtime;
    std::string message;
    Position at;
};

/// Text under construction, counted against the heap while it lives.
class Buffer {
public:
    Buffer(Heap& heap, size_t limit) : heap_(heap), limit_(limit) {}
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { heap_.discharge(charged_); }
    void append(std::string_view text);
    const std::string& text() const { return text_; }
    std::string take() { return std::move(text_); }

private:
    Heap& heap_;
    size_t limit_;
    size_t charged_ = 0;
    std::string text_;
};

class Dict;

/// One rendering: its heap, its limits, where it is, and the constructors of values.
class Runtime {
public:
    explicit Runtime(const RenderOptions& o) : options(o), heap(o.max_memory_bytes) {}

    const RenderOptions& options;
    Heap heap;
    Position at;              ///< of the operation in progress, for failures
    bool autoescape = false;  ///< inside {% autoescape true %}
    int depth = 0;

    [[noreturn]] void fail(Fault fault, std::string message) const {
        throw Failure{fault, std::move(message), at};
    }
    /// Counts `n` steps of work.
    void step(uint64_t n = 1) {
        steps_ += n;
        if (steps_ > options.max_steps) out_of_steps();
    }
    /// Counts the reading or writing of `bytes`.
    void work(size_t bytes) { step(bytes / 64); }
    /// Fails unless a result of `bytes`, which may be many times its operands, is within limits.
    void check_size(Int bytes);
    /// The same for a text that escaping, case or layout can make `factor` times longer.
    void check_growth(size_t bytes, int factor) { check_size(static_cast<Int>(bytes) * factor); }

    Value string(std::string text, bool markup = false);
    Value string(std::string_view text, bool markup = false) {
        return string(std::string(text), markup);
    }
    Value string(const char* text) { return string(std::string(text)); }
    Value integer(Int i);
    Value integer(size_t i) { return Value::integer(static_cast<int64_t>(i)); }
    Value list(std::vector<Value> items);
    Value tuple(std::vector<Value> items);
    Value undefined(Undefined::Why why, const char* owner, Value subject = {});
    Value hint(const char* text) { return undefined(Undefined::Why::hint, text); }

    /// The time that this rendering takes for now: the same however often it asks.
    const CivilTime& now();
    /// A number that differs from call to call, the same in every rendering.
    uint64_t random();

private:
    [[noreturn]] void out_of_steps();

    uint64_t steps_ = 0;
    uint64_t drawn_ = 0;
    std::optional<CivilTime> now_;
};

/// Counts one level of nesting while it lives.
class Deeper {
public:
    explicit Deeper(Runtime& rt) : rt_(rt) {
        if (++rt.depth > rt.options.max_depth) too_deep(rt);
    }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    ~Deeper() { --rt_.depth; }

private:
    [[noreturn]] static void too_deep(Runtime& rt);
    Runtime& rt_;
};

/// A list that grows: charges the heap as it does.
class ListBuilder {
public:
    explicit ListBuilder(Runtime& rt);
    void push(Value v);
    Value finish() { return std::move(list_); }
    std::vector<Value>& items() { return list_.as<Sequence>().items; }

private:
    Runtime& rt_;
    Value list_;
};

}  // namespace exl3::jinja
