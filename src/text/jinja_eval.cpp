// Expressions.
#include <fmt/format.h>

#include "text/jinja_interp.h"

namespace exl3::jinja {

Value Interpreter::eval(const Node& node) {
    const Deeper deeper(rt_);
    rt_.step();
    switch (node.kind) {
        case NodeKind::constant: return static_cast<const Constant&>(node).value;
        case NodeKind::name: {
            const auto& n = static_cast<const Name&>(node);
            const Value& v = variable(n.ref);
            return v.missing() ? rt_.undefined(Undefined::Why::name, "", n.text) : v;
        }
        case NodeKind::list: return rt_.list(eval_all(static_cast<const Display&>(node).items));
        case NodeKind::tuple: return rt_.tuple(eval_all(static_cast<const Display&>(node).items));
        case NodeKind::dict: return eval_dict(static_cast<const DictDisplay&>(node));
        case NodeKind::attribute: {
            const auto& n = static_cast<const Attribute&>(node);
            const Value object = eval(*n.object);
            rt_.at = n.at;
            return get_attribute(rt_, object, n.name);
        }
        case NodeKind::item: return eval_item(static_cast<const Item&>(node));
        case NodeKind::call: return eval_call(static_cast<const CallNode&>(node));
        case NodeKind::filter:
        case NodeKind::test: return eval_application(static_cast<const Application&>(node));
        case NodeKind::negation: {
            const auto& n = static_cast<const Unary&>(node);
            return Value::boolean(!truthy(rt_, eval(*n.operand)));
        }
        case NodeKind::sign: {
            const auto& n = static_cast<const Unary&>(node);
            const Value v = eval(*n.operand);
            rt_.at = n.at;
            return n.minus ? negative(rt_, v) : positive(rt_, v);
        }
        case NodeKind::logic: return eval_logic(static_cast<const Binary&>(node));
        case NodeKind::binary: {
            const auto& n = static_cast<const Binary&>(node);
            const Value left = eval(*n.left), right = eval(*n.right);
            rt_.at = n.at;
            return binary(rt_, n.op, left, right);
        }
        case NodeKind::concat: return eval_concat(static_cast<const Display&>(node));
        case NodeKind::compare: return eval_compare(static_cast<const Compare&>(node));
        case NodeKind::condition: return eval_condition(static_cast<const Condition&>(node));
        default: break;
    }
    rt_.at = node.at;
    rt_.fail(Fault::runtime, "a statement stands where an expression is needed");
}

std::vector<Value> Interpreter::eval_all(const Body& nodes) {
    std::vector<Value> out;
    out.reserve(nodes.size());
    for (const NodePtr& n : nodes) out.push_back(eval(*n));
    return out;
}

Value Interpreter::eval_dict(const DictDisplay& node) {
    Value made = make_dict(rt_);
    for (const auto& [key_node, value_node] : node.entries) {
        const Value key = eval(*key_node);
        Value value = eval(*value_node);
        rt_.at = key_node->at;
        made.as<Dict>().set(rt_, key, std::move(value));
    }
    return made;
}

Value Interpreter::eval_item(const Item& node) {
    const Value object = eval(*node.object);
    if (node.key->kind != NodeKind::slice) {
        const Value key = eval(*node.key);
        rt_.at = node.at;
        return get_item(rt_, object, key);
    }
    const auto& slice = static_cast<const SliceNode&>(*node.key);
    const auto part = [&](const NodePtr& n) { return n ? eval(*n) : Value(); };
    const Value start = part(slice.start), stop = part(slice.stop), step = part(slice.step);
    rt_.at = node.at;
    return get_slice(rt_, object, start, stop, step);
}

void Interpreter::add_star(Args& args, const Value& star) {
    Cursor cursor(rt_, star);
    for (Value v; cursor.next(v);) {
        rt_.heap.check(args.positional.size() * sizeof(Value));
        args.positional.push_back(std::move(v));
    }
}

void Interpreter::add_star_star(Args& args, const Value& star_star) {
    if (!star_star.is(Kind::dict))
        rt_.fail(Fault::type,
                 fmt::format("argument after ** must be a mapping, not {}", type_name(star_star)));
    for (const Dict::Entry& e : star_star.as<Dict>().entries()) {
        if (!e.key.is_string()) rt_.fail(Fault::type, "keywords must be strings");
        for (const auto& [name, value] : args.named)
            if (name.as_text() == e.key.as_text())
                rt_.fail(Fault::type, fmt::format("got multiple values for keyword argument '{}'",
                                                  name.as_text()));
        rt_.step(args.named.size());
        args.named.emplace_back(e.key, e.value);
    }
}

Args Interpreter::eval_arguments(const Arguments& a) {
    Args args;
    args.positional = eval_all(a.positional);
    args.named.reserve(a.named.size());
    for (const auto& [name, value] : a.named) args.named.emplace_back(name, eval(*value));
    if (a.star) add_star(args, eval(*a.star));
    if (a.star_star) add_star_star(args, eval(*a.star_star));
    return args;
}

Value Interpreter::eval_call(const CallNode& node, const Value* caller) {
    const auto arguments = [&] {
        Args args = eval_arguments(node.arguments);
        if (caller) args.named.emplace_back(rt_.string("caller"), *caller);
        rt_.at = node.at;
        return args;
    };
    if (node.callee->kind == NodeKind::attribute) {
        // x.method(...) without making an object for x.method
        const auto& attribute = static_cast<const Attribute&>(*node.callee);
        const Value object = eval(*attribute.object);
        rt_.at = attribute.at;
        const BuiltinEntry* method = find_method(object.kind(), attribute.name.as_text());
        if (method && !method->changes) return method->call(rt_, object, arguments());
        const Value callee = get_attribute(rt_, object, attribute.name);
        return call(rt_, callee, arguments());
    }
    const Value callee = eval(*node.callee);
    return call(rt_, callee, arguments());
}

// A filter or test. `input` is what a block statement feeds to the innermost filter of a chain.
Value Interpreter::eval_application(const Application& node, const Value* input) {
    Value v;
    if (!node.input)
        v = *input;
    else if (input)
        v = eval_application(static_cast<const Application&>(*node.input), input);
    else
        v = eval(*node.input);
    const Args args = eval_arguments(node.arguments);
    rt_.at = node.at;
    if (!node.entry)
        rt_.fail(Fault::runtime,
                 fmt::format("No {} named '{}' found.",
                             node.kind == NodeKind::filter ? "filter" : "test", node.name));
    return node.entry->call(rt_, v, args);
}

Value Interpreter::eval_logic(const Binary& node) {
    Value left = eval(*node.left);
    return truthy(rt_, left) == node.is_and ? eval(*node.right) : left;
}

Value Interpreter::eval_concat(const Display& node) {
    std::vector<Value> parts = eval_all(node.items);
    rt_.at = node.at;
    bool markup = false;
    if (rt_.autoescape)
        for (const Value& v : parts) markup |= v.is_string() && v.as<String>().markup;
    std::string out;
    for (const Value& v : parts) append_text(rt_, out, markup ? escape_html(rt_, v) : v);
    return rt_.string(std::move(out), markup);
}

Value Interpreter::eval_compare(const Compare& node) {
    Value left = eval(*node.first);
    bool holds = true;
    for (const auto& [op, operand] : node.rest) {
        Value right = eval(*operand);
        rt_.at = node.at;
        holds = compare(rt_, op, left, right);
        if (!holds) break;
        left = std::move(right);
    }
    return Value::boolean(holds);
}

Value Interpreter::eval_condition(const Condition& node) {
    if (truthy(rt_, eval(*node.test))) return eval(*node.then);
    if (node.otherwise) return eval(*node.otherwise);
    return rt_.hint("the inline if-expression evaluated to false and no else section was defined.");
}

void Interpreter::assign(const Node& target, Value value) {
    if (target.kind == NodeKind::tuple)
        return assign_items(static_cast<const Display&>(target), value);
    const auto& name = static_cast<const Name&>(target);
    if (name.attribute.missing())
        variable(name.ref) = std::move(value);
    else
        namespace_of(name).as<Namespace>().attributes.as<Dict>().set(rt_, name.attribute,
                                                                     std::move(value));
}

// The namespace whose attribute a target names.
Value Interpreter::namespace_of(const Name& target) {
    rt_.at = target.at;
    Value ns = variable(target.ref);
    if (!ns.is(Kind::name_space))
        rt_.fail(Fault::runtime, "cannot assign attribute on non-namespace object");
    return ns;
}

void Interpreter::assign_items(const Display& targets, const Value& value) {
    rt_.at = targets.at;
    const size_t wanted = targets.items.size();
    std::vector<Value> values;
    Cursor cursor(rt_, value);
    for (Value v; cursor.next(v);) {
        if (values.size() == wanted)
            rt_.fail(Fault::value, fmt::format("too many values to unpack (expected {})", wanted));
        values.push_back(std::move(v));
    }
    if (values.size() < wanted)
        rt_.fail(Fault::value, fmt::format("not enough values to unpack (expected {}, got {})",
                                           wanted, values.size()));
    for (size_t i = 0; i < wanted; ++i) assign(*targets.items[i], std::move(values[i]));
}

}  // namespace exl3::jinja
