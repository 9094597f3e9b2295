// Statements other than loops and macros.
#include <fmt/format.h>

#include "text/jinja_interp.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {

std::string Interpreter::run() {
    Buffer out(rt_.heap, rt_.options.max_output_bytes);
    root_ = make_frame(tree_.scope.slots, {});
    {
        const Activation activation(*this, root_, out);
        enter(tree_.scope);
        exec(tree_.body);
    }
    return out.take();
}

Value Interpreter::make_frame(size_t slots, Value parent) {
    return Value::object(Kind::frame,
                         rt_.heap.make<Frame>(slots * sizeof(Value), slots, std::move(parent)));
}

Value& Interpreter::variable(VarRef ref) {
    Frame* f = &frame_.as<Frame>();
    for (uint16_t i = 0; i < ref.hops; ++i) f = &f->parent.as<Frame>();
    return f->slots[ref.slot];
}

Value Interpreter::resolve(const Value& name) {
    const std::string key(name.as_text());
    const auto known = resolved_.find(key);
    if (known != resolved_.end()) return known->second;
    Value v;
    if (const auto at = variables_.find(key); at != variables_.end())
        v = convert(*at, key);
    else if (const BuiltinEntry* e = find_global(key))
        v = Value::object(Kind::function, rt_.heap.make<Function>(0, e, Value()));
    resolved_.emplace(key, v);
    return v;
}

Value Interpreter::convert(const Json& json, const std::string& variable) {
    const Deeper deeper(rt_);
    rt_.step();
    const auto text = [&](const std::string& s) {
        if (!text::is_valid_utf8(s))
            rt_.fail(Fault::value,
                     fmt::format("variable '{}': found text that is not UTF-8", variable));
        return rt_.string(s);
    };
    switch (json.type()) {
        case Json::value_t::boolean: return Value::boolean(json.get<bool>());
        case Json::value_t::number_integer: return Value::integer(json.get<int64_t>());
        case Json::value_t::number_unsigned:
            return rt_.integer(static_cast<Int>(json.get<uint64_t>()));
        case Json::value_t::number_float: return Value::real(json.get<double>());
        case Json::value_t::string: return text(json.get_ref<const std::string&>());
        case Json::value_t::array: {
            ListBuilder list(rt_);
            for (const Json& item : json) list.push(convert(item, variable));
            return list.finish();
        }
        case Json::value_t::object: {
            Value dict = make_dict(rt_);
            for (const auto& [key, value] : json.items())
                dict.as<Dict>().set(rt_, text(key), convert(value, variable));
            return dict;
        }
        default: return Value::none();
    }
}

void Interpreter::enter(const Scope& scope) {
    for (const Load& load : scope.loads) {
        Value v;
        if (load.how == Load::How::resolve)
            v = resolve(load.name);
        else if (load.how == Load::How::alias)
            v = variable(load.source);
        variable({0, load.slot}) = std::move(v);
    }
}

void Interpreter::leave(const Scope& scope) {
    for (const Load& load : scope.loads) variable({0, load.slot}) = {};
}

void Interpreter::emit(const Value& value) {
    if (rt_.autoescape)
        out_->append(escape_html(rt_, value).as_text());
    else if (value.is_string())
        out_->append(value.as_text());
    else
        out_->append(to_text(rt_, value));
}

Interpreter::Flow Interpreter::exec(const Body& body) {
    for (const NodePtr& node : body) {
        const Flow flow = exec(*node);
        if (flow != Flow::normal) return flow;
    }
    return Flow::normal;
}

Interpreter::Flow Interpreter::exec(const Node& node) {
    const Deeper deeper(rt_);
    rt_.step();
    switch (node.kind) {
        case NodeKind::text:
            rt_.at = node.at;
            out_->append(static_cast<const Text&>(node).text);
            break;
        case NodeKind::output: {
            const auto& n = static_cast<const Output&>(node);
            const Value value = eval(*n.value);
            rt_.at = n.at;
            emit(value);
            break;
        }
        case NodeKind::for_loop: return exec_for(static_cast<const For&>(node));
        case NodeKind::branch: return exec_branch(static_cast<const Branch&>(node));
        case NodeKind::set: exec_set(static_cast<const Set&>(node)); break;
        case NodeKind::set_block: return exec_set_block(static_cast<const SetBlock&>(node));
        case NodeKind::macro: {
            const auto& n = static_cast<const MacroNode&>(node);
            assign(*n.target, make_macro(n));
            break;
        }
        case NodeKind::call_block: exec_call_block(static_cast<const CallBlock&>(node)); break;
        case NodeKind::filter_block:
            return exec_filter_block(static_cast<const FilterBlock&>(node));
        case NodeKind::with: return exec_with(static_cast<const With&>(node));
        case NodeKind::block: exec_block(static_cast<const Block&>(node)); break;
        case NodeKind::autoescape: return exec_autoescape(static_cast<const Autoescape&>(node));
        case NodeKind::loop_control:
            return static_cast<const LoopControl&>(node).is_break ? Flow::break_loop
                                                                  : Flow::continue_loop;
        default: break;
    }
    return Flow::normal;
}

void Interpreter::exec_set(const Set& node) {
    // Jinja looks at the namespace before it computes the value.
    if (node.target->kind == NodeKind::name)
        if (const auto& name = static_cast<const Name&>(*node.target); !name.attribute.missing())
            namespace_of(name);
    assign(*node.target, eval(*node.value));
}

Interpreter::Flow Interpreter::exec_branch(const Branch& node) {
    for (const auto& [test, body] : node.cases)
        if (truthy(rt_, eval(*test))) return exec(body);
    return exec(node.otherwise);
}

Interpreter::Flow Interpreter::capture(const Body& body, Value& text) {
    Buffer buffer(rt_.heap, rt_.options.max_output_bytes);
    Flow flow = Flow::normal;
    {
        const Activation activation(*this, frame_, buffer);
        flow = exec(body);
    }
    if (flow == Flow::normal) text = rt_.string(buffer.take(), rt_.autoescape);
    return flow;
}

Interpreter::Flow Interpreter::exec_set_block(const SetBlock& node) {
    enter(node.scope);
    Value text;
    const Flow flow = capture(node.body, text);
    if (flow == Flow::normal) {
        if (node.filter)
            text = eval_application(static_cast<const Application&>(*node.filter), &text);
        assign(*node.target, std::move(text));
    }
    leave(node.scope);
    return flow;
}

Interpreter::Flow Interpreter::exec_filter_block(const FilterBlock& node) {
    enter(node.scope);
    Value text;
    const Flow flow = capture(node.body, text);
    if (flow == Flow::normal) {
        const Value value = eval_application(static_cast<const Application&>(*node.filter), &text);
        rt_.at = node.at;
        emit(value);
    }
    leave(node.scope);
    return flow;
}

Interpreter::Flow Interpreter::exec_with(const With& node) {
    enter(node.scope);
    for (size_t i = 0; i < node.targets.size(); ++i)
        assign(*node.targets[i], eval(*node.values[i]));
    const Flow flow = exec(node.body);
    leave(node.scope);
    return flow;
}

Interpreter::Flow Interpreter::exec_autoescape(const Autoescape& node) {
    enter(node.scope);
    const bool outside = rt_.autoescape;
    rt_.autoescape = truthy(rt_, eval(*node.value));
    const Flow flow = exec(node.body);
    rt_.autoescape = outside;
    leave(node.scope);
    return flow;
}

// A block sees the variables that the template itself has set so far, and no local ones.
void Interpreter::exec_block(const Block& node) {
    const Activation activation(*this, make_frame(node.scope.slots, {}), *out_);
    enter(node.scope);
    for (const Load& load : node.scope.loads) {
        if (load.how != Load::How::resolve) continue;
        for (const auto& [name, slot] : tree_.globals) {
            const Value& v = root_.as<Frame>().slots[slot];
            if (name == load.name.as_text() && !v.missing()) variable({0, load.slot}) = v;
        }
    }
    exec(node.body);
}

void Interpreter::exec_call_block(const CallBlock& node) {
    const auto& block = static_cast<const MacroNode&>(*node.macro);
    const Value caller = make_macro(block);
    Value result;
    if (node.call) {
        result = eval_call(static_cast<const CallNode&>(*node.call), &caller);
    } else {
        rt_.at = node.at;
        result = call(rt_, caller, {});
    }
    rt_.at = node.at;
    if (!result.is_string())
        rt_.fail(Fault::type,
                 fmt::format("call: found a result of type {}, needed str", type_name(result)));
    emit(result);
}

}  // namespace exl3::jinja
