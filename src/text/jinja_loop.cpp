// For loops and the `loop` variable.
#include <fmt/format.h>

#include <optional>

#include "text/jinja_interp.h"

namespace exl3::jinja {

/// What {% for x in items if test %} iterates over: the items that pass, found when asked for.
struct Interpreter::LoopFilter : Iterator {
    LoopFilter(Interpreter& i, const For& n, Value f, Cursor c)
        : in(i), node(n), frame(std::move(f)), cursor(std::move(c)) {}
    bool next(Runtime& rt, Value& out) override {
        const Deeper deeper(rt);
        const Activation activation(in, frame, *in.out_);
        for (Value item; cursor.next(item);) {
            in.assign(*node.test_target, item);
            in.enter(node.test_scope);
            if (!truthy(rt, in.eval(*node.test))) continue;
            out = packed(*node.test_target, item);
            return true;
        }
        return false;
    }
    // Items that were unpacked come out as tuples.
    Value packed(const Node& target, const Value& item) {
        if (target.kind != NodeKind::tuple) return item;
        const Value items = make_list(in.rt_, item);
        std::vector<Value> out;
        const auto& targets = static_cast<const Display&>(target).items;
        for (size_t i = 0; i < targets.size(); ++i)
            out.push_back(packed(*targets[i], items.as<Sequence>().items[i]));
        return in.rt_.tuple(std::move(out));
    }
    Interpreter& in;
    const For& node;
    Value frame;
    Cursor cursor;
};

/// The `loop` variable. Reads one item ahead only when somebody asks what comes next, as Jinja
/// does: a template can see it where the items come from a lazy filter.
class Interpreter::LoopContext : public LoopObject {
public:
    LoopContext(Interpreter& in, const For& node, Value parent, const Value& iterable, int depth)
        : in_(in),
          node_(node),
          parent_(std::move(parent)),
          iterable_(iterable),
          cursor_(in.rt_, iterable),
          depth_(depth) {}
    void clear() override {
        for (Value* v : {&parent_, &after_, &current_, &before_, &changed_}) *v = {};
    }
    bool next(Value& out) {
        Value item;
        if (!after_.missing())
            item = std::move(after_);
        else if (!advance(item))
            return false;
        after_ = {};
        ++index0_;
        before_ = std::move(current_);
        current_ = item;
        out = std::move(item);
        return true;
    }
    Value attribute(Runtime& rt, std::string_view name) override;
    size_t length(Runtime& rt) override;
    Value call(Runtime& rt, const Args& args) override {
        if (!node_.recursive)
            rt.fail(Fault::type,
                    "The loop must have the 'recursive' marker to be called recursively.");
        const Bound b = bind(rt, "loop", args, "iterable");
        return in_.recurse(node_, parent_, b[0], depth_ + 1);
    }
    std::string describe(Runtime& rt) override {
        return fmt::format("<LoopContext {}/{}>", index0_ + 1, length(rt));
    }
    Value cycle(Runtime& rt, const Args& args) const {
        if (!args.named.empty()) rt.fail(Fault::type, "cycle() takes no keyword arguments");
        if (args.positional.empty()) rt.fail(Fault::type, "no items for cycling given");
        return args.positional[static_cast<size_t>(index0_) % args.positional.size()];
    }
    Value changed(Runtime& rt, const Args& args) {
        if (!args.named.empty()) rt.fail(Fault::type, "changed() takes no keyword arguments");
        Value values = rt.tuple(args.positional);
        const bool differs = changed_.missing() || !equals(rt, changed_, values);
        if (differs) changed_ = std::move(values);
        return Value::boolean(differs);
    }

private:
    bool advance(Value& out) {
        if (rest_.missing()) return cursor_.next(out);
        const auto& items = rest_.as<Sequence>().items;
        if (rest_at_ >= items.size()) return false;
        out = items[rest_at_++];
        return true;
    }
    bool has_next() {
        if (after_.missing()) advance(after_);
        return !after_.missing();
    }

    Interpreter& in_;
    const For& node_;
    Value parent_;  // the frame that a recursive loop is called in
    Value iterable_;
    Cursor cursor_;
    int depth_;
    int64_t index0_ = -1;
    int64_t length_ = -1;
    Value after_, current_, before_, changed_;
    Value rest_;  // the items to come, once they had to be counted
    size_t rest_at_ = 0;
};

size_t Interpreter::LoopContext::length(Runtime& rt) {
    if (length_ < 0) {
        if (iterable_.is(Kind::iterator)) {
            ListBuilder rest(rt);
            for (Value v; cursor_.next(v);) rest.push(v);
            rest_ = rest.finish();
            length_ = static_cast<int64_t>(rest_.as<Sequence>().items.size()) + index0_ + 1 +
                      (after_.missing() ? 0 : 1);
        } else {
            length_ = static_cast<int64_t>(length_of(rt, iterable_));
        }
    }
    return static_cast<size_t>(length_);
}

Value Interpreter::LoopContext::attribute(Runtime& rt, std::string_view name) {
    static constexpr BuiltinEntry kCycle{"cycle",
                                         [](Runtime& r, const Value& self, const Args& args) {
                                             return self.as<LoopContext>().cycle(r, args);
                                         }};
    static constexpr BuiltinEntry kChanged{"changed",
                                           [](Runtime& r, const Value& self, const Args& args) {
                                               return self.as<LoopContext>().changed(r, args);
                                           }};
    const auto method = [&](const BuiltinEntry& entry) {
        const Value self = Value::object(Kind::loop, this);
        return Value::object(Kind::method, rt.heap.make<Method>(0, &entry, self));
    };
    const auto remaining = [&] { return static_cast<int64_t>(length(rt)) - index0_; };
    if (name == "index") return Value::integer(index0_ + 1);
    if (name == "index0") return Value::integer(index0_);
    if (name == "first") return Value::boolean(index0_ == 0);
    if (name == "last") return Value::boolean(!has_next());
    if (name == "length") return rt.integer(length(rt));
    if (name == "revindex") return Value::integer(remaining());
    if (name == "revindex0") return Value::integer(remaining() - 1);
    if (name == "depth") return Value::integer(depth_ + 1);
    if (name == "depth0") return Value::integer(depth_);
    if (name == "previtem") return index0_ == 0 ? rt.hint("there is no previous item") : before_;
    if (name == "nextitem") return has_next() ? after_ : rt.hint("there is no next item");
    if (name == "cycle") return method(kCycle);
    if (name == "changed") return method(kChanged);
    return {};
}

Interpreter::Flow Interpreter::exec_for(const For& node) {
    const Value iterable = eval(*node.iterable);
    rt_.at = node.iterable->at;
    if (node.recursive) {
        const Value text = recurse(node, frame_, iterable, 0);
        emit(text);
        return Flow::normal;
    }
    if (!node.uses_loop && !node.test) return iterate(node, iterable, nullptr);

    Value items = iterable;
    if (node.test)
        items = Value::object(
            Kind::iterator,
            rt_.heap.make<LoopFilter>(0, *this, node, make_frame(node.test_scope.slots, frame_),
                                      Cursor(rt_, iterable)));
    if (!node.uses_loop) return iterate(node, items, nullptr);
    auto* loop = rt_.heap.make<LoopContext>(0, *this, node, Value(), items, 0);
    const Value held = Value::object(Kind::loop, loop);
    variable(node.loop) = held;
    return iterate(node, items, loop);
}

Interpreter::Flow Interpreter::iterate(const For& node, const Value& iterable, LoopContext* loop) {
    rt_.at = node.iterable->at;
    std::optional<Cursor> cursor;
    if (!loop) cursor.emplace(rt_, iterable);
    // The else part runs unless some iteration came to the end of the body.
    bool completed = false;
    for (Value item; loop ? loop->next(item) : cursor->next(item);) {
        assign(*node.target, std::move(item));
        enter(node.body_scope);
        const Flow flow = exec(node.body);
        if (flow == Flow::break_loop) break;
        if (flow == Flow::normal) completed = true;
        rt_.at = node.iterable->at;
    }
    if (!node.recursive) leave(node.body_scope);
    if (completed || node.otherwise.empty()) return Flow::normal;
    enter(node.otherwise_scope);
    const Flow flow = exec(node.otherwise);
    leave(node.otherwise_scope);
    return flow;
}

// One call of a recursive loop: its text.
Value Interpreter::recurse(const For& node, const Value& parent, const Value& iterable, int depth) {
    const Deeper deeper(rt_);
    Value items = iterable;
    if (node.test)
        items = Value::object(
            Kind::iterator,
            rt_.heap.make<LoopFilter>(0, *this, node, make_frame(node.test_scope.slots, parent),
                                      Cursor(rt_, iterable)));
    auto* loop = rt_.heap.make<LoopContext>(0, *this, node, parent, items, depth);
    const Value held = Value::object(Kind::loop, loop);
    Buffer buffer(rt_.heap, rt_.options.max_output_bytes);
    {
        const Activation activation(*this, make_frame(node.slots, parent), buffer);
        variable(node.loop) = held;
        iterate(node, items, loop);
    }
    return rt_.string(buffer.take(), rt_.autoescape);
}

}  // namespace exl3::jinja
