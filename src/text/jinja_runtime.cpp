#include "text/jinja_runtime.h"

#include <fmt/format.h>

#include <limits>

#include "base/random.h"
#include "text/jinja_ops.h"

namespace exl3::jinja {

void Buffer::append(std::string_view text) {
    if (text.size() > limit_ - text_.size())
        throw Failure{Fault::limit, fmt::format("the output is longer than {} bytes", limit_), {}};
    heap_.charge(text.size());
    charged_ += text.size();
    text_ += text;
}

void Runtime::out_of_steps() {
    fail(Fault::limit, fmt::format("the template needs more than {} steps", options.max_steps));
}

void Runtime::check_size(Int bytes) {
    if (bytes > static_cast<Int>(options.max_memory_bytes)) throw MemoryExhausted{};
    if (bytes <= 0) return;
    heap.check(static_cast<size_t>(bytes));
}

Value Runtime::string(std::string text, bool markup) {
    work(text.size());
    const size_t extra = text.capacity() > 15 ? text.capacity() : 0;
    return Value::object(Kind::string, heap.make<String>(extra, std::move(text), markup));
}

Value Runtime::integer(Int i) {
    if (i >= std::numeric_limits<int64_t>::min() && i <= std::numeric_limits<int64_t>::max())
        return Value::integer(static_cast<int64_t>(i));
    return Value::object(Kind::wide, heap.make<Wide>(0, i));
}

Value Runtime::list(std::vector<Value> items) {
    const size_t extra = items.size() * sizeof(Value);
    work(extra);
    return Value::object(Kind::list, heap.make<Sequence>(extra, std::move(items)));
}

Value Runtime::tuple(std::vector<Value> items) {
    const size_t extra = items.size() * sizeof(Value);
    work(extra);
    return Value::object(Kind::tuple, heap.make<Sequence>(extra, std::move(items)));
}

Value Runtime::undefined(Undefined::Why why, const char* owner, Value subject) {
    return Value::object(Kind::undefined, heap.make<Undefined>(0, why, owner, std::move(subject)));
}

const CivilTime& Runtime::now() {
    if (!now_) now_ = options.now ? *options.now : CivilTime::local_now();
    return *now_;
}

uint64_t Runtime::random() {
    return noise64(0, drawn_++);
}

void Deeper::too_deep(Runtime& rt) {
    --rt.depth;
    rt.fail(Fault::limit,
            fmt::format("the template nests more than {} evaluations", rt.options.max_depth));
}

ListBuilder::ListBuilder(Runtime& rt) : rt_(rt), list_(rt.list({})) {}

void ListBuilder::push(Value v) {
    rt_.step();
    rt_.heap.grow(*list_.object(), sizeof(Value));
    items().push_back(std::move(v));
}

}  // namespace exl3::jinja
