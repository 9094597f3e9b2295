// Macros, and the blocks of text that call statements pass to them.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_interp.h"

namespace exl3::jinja {

class Interpreter::Macro : public Callable {
public:
    Macro(Interpreter& in, const MacroNode& node, Value closure)
        : in_(in), node_(node), closure_(std::move(closure)) {}

    Value call(Runtime&, const Args& args) override {
        return in_.call_macro(node_, closure_, args);
    }
    std::string describe() const override {
        return node_.target ? fmt::format("<Macro '{}'>", node_.name) : "<Macro anonymous>";
    }
    Value attribute(Runtime& rt, std::string_view name) override {
        if (name == "name") return node_.target ? rt.string(node_.name) : Value::none();
        if (name == "arguments") {
            std::vector<Value> names;
            for (const NodePtr& p : node_.parameters)
                names.push_back(static_cast<const Name&>(*p).text);
            return rt.tuple(std::move(names));
        }
        if (name == "catch_kwargs") return Value::boolean(node_.takes_kwargs);
        if (name == "catch_varargs") return Value::boolean(node_.takes_varargs);
        if (name == "caller") return Value::boolean(node_.takes_caller);
        if (name == "explicit_caller") return Value::boolean(node_.explicit_caller);
        return {};
    }

private:
    Interpreter& in_;
    const MacroNode& node_;
    Value closure_;
};

Value Interpreter::make_macro(const MacroNode& node) {
    return Value::object(Kind::macro, rt_.heap.make<Macro>(0, *this, node, frame_));
}

namespace {

const Name& parameter(const MacroNode& node, size_t i) {
    return static_cast<const Name&>(*node.parameters[i]);
}

// Takes the named argument out of `named`; missing if it is not there.
Value take_named(std::vector<std::pair<Value, Value>>& named, std::string_view name) {
    const auto at = std::find_if(named.begin(), named.end(),
                                 [&](const auto& a) { return a.first.as_text() == name; });
    if (at == named.end()) return {};
    Value v = std::move(at->second);
    named.erase(at);
    return v;
}

std::string quoted_name(const MacroNode& node) {
    return node.target ? "'" + node.name + "'" : "None";
}

}  // namespace

Value Interpreter::call_macro(const MacroNode& node, const Value& closure, const Args& args) {
    const size_t count = node.parameters.size();
    const size_t given = std::min(count, args.positional.size());
    const Value own = make_frame(node.scope.slots, closure);
    auto& slots = own.as<Frame>().slots;
    auto named = args.named;

    for (size_t i = 0; i < given; ++i) slots[parameter(node, i).ref.slot] = args.positional[i];
    bool caller_taken = given == count ? node.explicit_caller : false;
    for (size_t i = given; i < count; ++i) {
        slots[parameter(node, i).ref.slot] = take_named(named, parameter(node, i).name);
        caller_taken |= parameter(node, i).name == "caller";
    }
    if (node.takes_caller && !caller_taken) {
        Value caller = take_named(named, "caller");
        if (caller.missing() || caller.is_none()) caller = rt_.hint("No caller defined");
        slots[node.caller.slot] = std::move(caller);
    }
    if (node.takes_kwargs) {
        Value kwargs = make_dict(rt_);
        for (const auto& [name, value] : named) kwargs.as<Dict>().set(rt_, name, value);
        slots[node.kwargs.slot] = std::move(kwargs);
    } else if (!named.empty()) {
        rt_.fail(Fault::type, fmt::format("macro {} takes no keyword argument {}",
                                          quoted_name(node), repr(rt_, named[0].first)));
    }
    if (node.takes_varargs)
        slots[node.varargs.slot] = rt_.tuple(
            {args.positional.begin() + static_cast<ptrdiff_t>(given), args.positional.end()});
    else if (args.positional.size() > count)
        rt_.fail(Fault::type, fmt::format("macro {} takes not more than {} argument(s)",
                                          quoted_name(node), count));

    Buffer buffer(rt_.heap, rt_.options.max_output_bytes);
    {
        const Activation activation(*this, own, buffer);
        enter(node.scope);
        for (size_t i = 0; i < count; ++i) {
            if (!slots[parameter(node, i).ref.slot].missing()) continue;
            const size_t first_default = count - node.defaults.size();
            slots[parameter(node, i).ref.slot] =
                i >= first_default
                    ? eval(*node.defaults[i - first_default])
                    : rt_.undefined(Undefined::Why::parameter, "", parameter(node, i).text);
        }
        exec(node.body);
    }
    return rt_.string(buffer.take(), rt_.autoescape);
}

}  // namespace exl3::jinja
