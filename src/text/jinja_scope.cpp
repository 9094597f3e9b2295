#include "text/jinja_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/jinja_symbols.h"

namespace exl3::jinja {
namespace {

/// Where a piece of template stands.
struct Place {
    Symbols* symbols;
    FrameLayout* frame;
    bool conditional =
        false;             ///< directly in an if or an inline if: unknown filters may stand there
    bool in_loop = false;  ///< break and continue have a loop to act on
};

class Binder {
public:
    explicit Binder(Tree& tree) : tree_(tree) {}

    void run() {
        FrameLayout frame(0);
        Symbols symbols(nullptr, frame);
        symbols.read_all(tree_.body);
        bind_all(tree_.body, {&symbols, &frame});
        finish(tree_.scope, symbols, frame);
        tree_.scope.slots = static_cast<uint16_t>(frame.slots.size());
        for (const auto& [name, variable] : symbols.variables())
            tree_.globals.emplace_back(name, variable.slot);
        for (const std::string& name : free_)
            if (!find_global(name)) tree_.free_names.push_back(name);
    }

private:
    void bind(Node& node, const Place& at);
    void bind_all(const Body& nodes, const Place& at) {
        for (const NodePtr& n : nodes) bind(*n, at);
    }
    void bind_name(Name& name, const Place& at) const;
    void bind_application(Application& node, const Place& at);
    void bind_for(For& node, const Place& at);
    void bind_test(For& node, const Place& at);
    void bind_macro(MacroNode& node, const Place& at);
    void bind_set_block(SetBlock& node, const Place& at);
    void bind_filter_block(FilterBlock& node, const Place& at);
    void bind_with(With& node, const Place& at);
    void bind_block(Block& node);
    void bind_autoescape(Autoescape& node, const Place& at);
    void finish(Scope& scope, const Symbols& symbols, const FrameLayout& frame) {
        scope.loads = symbols.entry(frame);
        free_.insert(symbols.free.begin(), symbols.free.end());
    }
    /// The place inside a block with variables of its own in the same frame.
    static Place inner(const Place& at, Symbols& symbols) {
        return {&symbols, at.frame, false, at.in_loop};
    }

    Tree& tree_;
    std::set<std::string> free_;
};

VarRef reference(const Variable& v, const FrameLayout& from) {
    return {static_cast<uint16_t>(from.depth - v.frame->depth), v.slot};
}

void Binder::bind_name(Name& name, const Place& at) const {
    // Most names are known by now; those in the filter of a set block are read here first.
    at.symbols->load(name.name, name.text);
    name.ref = reference(*at.symbols->find(name.name), *at.frame);
}

void Binder::bind(Node& node, const Place& at) {
    switch (node.kind) {
        case NodeKind::name: return bind_name(static_cast<Name&>(node), at);
        case NodeKind::filter:
        case NodeKind::test: return bind_application(static_cast<Application&>(node), at);
        case NodeKind::for_loop: return bind_for(static_cast<For&>(node), at);
        case NodeKind::set_block: return bind_set_block(static_cast<SetBlock&>(node), at);
        case NodeKind::filter_block: return bind_filter_block(static_cast<FilterBlock&>(node), at);
        case NodeKind::with: return bind_with(static_cast<With&>(node), at);
        case NodeKind::block: return bind_block(static_cast<Block&>(node));
        case NodeKind::autoescape: return bind_autoescape(static_cast<Autoescape&>(node), at);
        case NodeKind::macro: return bind_macro(static_cast<MacroNode&>(node), at);
        case NodeKind::condition:
        case NodeKind::branch: {
            Place soft = at;
            soft.conditional = true;
            node.each_child([&](Node& child) { bind(child, soft); });
            return;
        }
        case NodeKind::loop_control:
            if (at.in_loop) return;
            throw Failure{Fault::syntax, "break or continue outside of a loop", node.at};
        default: node.each_child([&](Node& child) { bind(child, at); });
    }
}

void Binder::bind_application(Application& node, const Place& at) {
    if (!node.entry && !at.conditional)
        throw Failure{
            Fault::syntax,
            fmt::format("No {} named {}.", node.kind == NodeKind::filter ? "filter" : "test",
                        repr_of_text(node.name)),
            node.at};
    node.each_child([&](Node& child) { bind(child, at); });
}

void refuse_loop_target(Node& node) {
    if (node.kind == NodeKind::name) {
        const auto& n = static_cast<const Name&>(node);
        if (n.use == Name::Use::store && n.attribute.missing() && n.name == "loop")
            throw Failure{Fault::syntax, "Can't assign to special loop variable in for-loop", n.at};
    }
    node.each_child(refuse_loop_target);
}

void Binder::bind_for(For& node, const Place& at) {
    bind(*node.iterable, at);
    if (node.test) bind_test(node, at);
    refuse_loop_target(node);

    // A recursive loop is a function: it runs in a frame of its own, once for each call.
    FrameLayout own(static_cast<uint16_t>(at.frame->depth + 1));
    FrameLayout& frame = node.recursive ? own : *at.frame;
    Symbols symbols(at.symbols, frame), otherwise(at.symbols, frame);
    node.uses_loop = node.recursive || !undeclared(node.body, {"loop"}).empty();
    if (node.uses_loop) node.loop = reference(symbols.declare("loop"), frame);
    symbols.declare_targets(*node.target);
    symbols.read_all(node.body);
    otherwise.read_all(node.otherwise);

    const Place inside{&symbols, &frame, false, true};
    bind(*node.target, inside);
    bind_all(node.body, inside);
    bind_all(node.otherwise, {&otherwise, &frame, false, !node.recursive && at.in_loop});
    finish(node.body_scope, symbols, frame);
    finish(node.otherwise_scope, otherwise, frame);
    node.slots = static_cast<uint16_t>(own.slots.size());
}

void Binder::bind_test(For& node, const Place& at) {
    FrameLayout frame(static_cast<uint16_t>(at.frame->depth + 1));
    Symbols symbols(at.symbols, frame);
    symbols.declare_targets(*node.test_target);
    symbols.read(*node.test);
    const Place inside{&symbols, &frame};
    bind(*node.test_target, inside);
    bind(*node.test, inside);
    finish(node.test_scope, symbols, frame);
    node.test_scope.slots = static_cast<uint16_t>(frame.slots.size());
}

void Binder::bind_macro(MacroNode& node, const Place& at) {
    if (node.target) bind(*node.target, at);
    FrameLayout frame(static_cast<uint16_t>(at.frame->depth + 1));
    Symbols symbols(at.symbols, frame);
    symbols.read_all(node.parameters);
    symbols.read_all(node.defaults);
    symbols.read_all(node.body);

    const auto has_parameter = [&](std::string_view name) {
        return std::any_of(node.parameters.begin(), node.parameters.end(), [&](const NodePtr& p) {
            return static_cast<const Name&>(*p).name == name;
        });
    };
    const std::set<std::string> special = undeclared(node.body, {"caller", "kwargs", "varargs"});
    node.takes_caller = special.count("caller");
    node.explicit_caller = has_parameter("caller");
    if (node.takes_caller && node.explicit_caller) {
        const size_t first_default = node.parameters.size() - node.defaults.size();
        for (size_t i = 0; i < first_default; ++i)
            if (static_cast<const Name&>(*node.parameters[i]).name == "caller")
                throw Failure{Fault::syntax,
                              "When defining macros or call blocks the special \"caller\" argument "
                              "must be omitted or be given a default.",
                              node.at};
    }
    const auto declare = [&](const char* name) { return reference(symbols.declare(name), frame); };
    if (node.takes_caller && !node.explicit_caller) node.caller = declare("caller");
    node.takes_kwargs = special.count("kwargs") && !has_parameter("kwargs");
    if (node.takes_kwargs) node.kwargs = declare("kwargs");
    node.takes_varargs = special.count("varargs") && !has_parameter("varargs");
    if (node.takes_varargs) node.varargs = declare("varargs");

    const Place inside{&symbols, &frame};
    bind_all(node.parameters, inside);
    bind_all(node.defaults, inside);
    bind_all(node.body, inside);
    finish(node.scope, symbols, frame);
    node.scope.slots = static_cast<uint16_t>(frame.slots.size());
}

void Binder::bind_set_block(SetBlock& node, const Place& at) {
    bind(*node.target, at);
    Symbols symbols(at.symbols, *at.frame);
    symbols.read_all(node.body);
    const Place inside = inner(at, symbols);
    bind_all(node.body, inside);
    if (node.filter) bind(*node.filter, inside);
    finish(node.scope, symbols, *at.frame);
}

void Binder::bind_filter_block(FilterBlock& node, const Place& at) {
    Symbols symbols(at.symbols, *at.frame);
    symbols.read_all(node.body);
    symbols.read(*node.filter);
    const Place inside = inner(at, symbols);
    bind_all(node.body, inside);
    bind(*node.filter, inside);
    finish(node.scope, symbols, *at.frame);
}

void Binder::bind_with(With& node, const Place& at) {
    bind_all(node.values, at);
    Symbols symbols(at.symbols, *at.frame);
    symbols.read_all(node.targets);
    symbols.read_all(node.body);
    const Place inside = inner(at, symbols);
    bind_all(node.targets, inside);
    bind_all(node.body, inside);
    finish(node.scope, symbols, *at.frame);
}

void Binder::bind_block(Block& node) {
    FrameLayout frame(0);
    Symbols symbols(nullptr, frame);
    symbols.read_all(node.body);
    bind_all(node.body, {&symbols, &frame});
    finish(node.scope, symbols, frame);
    node.scope.slots = static_cast<uint16_t>(frame.slots.size());
}

void Binder::bind_autoescape(Autoescape& node, const Place& at) {
    Symbols symbols(at.symbols, *at.frame);
    symbols.read(*node.value);
    symbols.read_all(node.body);
    const Place inside = inner(at, symbols);
    bind(*node.value, inside);
    bind_all(node.body, inside);
    finish(node.scope, symbols, *at.frame);
}

}  // namespace

void bind_variables(Tree& tree) {
    Binder(tree).run();
}

}  // namespace exl3::jinja
