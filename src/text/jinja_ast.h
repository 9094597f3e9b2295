#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_call.h"
#include "text/jinja_ops.h"
#include "text/jinja_runtime.h"

/// The syntax tree of a template. The parser builds it, the binder (jinja_scope.h) fills in where
/// each variable lives, the interpreter reads it; after that it never changes.
namespace exl3::jinja {

enum class NodeKind : uint8_t {
    // expressions
    constant,
    name,
    list,
    tuple,
    dict,
    attribute,
    item,
    slice,
    call,
    filter,
    test,
    negation,
    sign,
    logic,
    binary,
    concat,
    compare,
    condition,
    // statements
    text,
    output,
    for_loop,
    branch,
    set,
    set_block,
    macro,
    call_block,
    filter_block,
    with,
    block,
    autoescape,
    loop_control
};

struct Node;
using NodePtr = std::unique_ptr<Node>;
using Body = std::vector<NodePtr>;
using Visit = std::function<void(Node&)>;

struct Node {
    Node(NodeKind k, Position p) : kind(k), at(p) {}
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    virtual ~Node() = default;
    /// Calls `visit` for the nodes directly below, in the order of Jinja's own tree.
    virtual void each_child(const Visit& visit) const { static_cast<void>(visit); }

    NodeKind kind;
    uint16_t depth = 1;  ///< of the tree from here down
    Position at;
};

inline void visit_all(const Body& nodes, const Visit& visit) {
    for (const NodePtr& n : nodes)
        if (n) visit(*n);
}
inline void visit_one(const NodePtr& node, const Visit& visit) {
    if (node) visit(*node);
}

/// Where a variable lives: `hops` functions out, in slot `slot` of that function's frame.
struct VarRef {
    uint16_t hops = 0;
    uint16_t slot = 0;
};

/// What happens to a variable when its scope is entered.
struct Load {
    enum class How : uint8_t { resolve, alias, unset };
    How how = How::unset;
    uint16_t slot = 0;
    VarRef source;  ///< of an alias
    Value name;     ///< of a variable of the rendering
};

/// A block of statements with variables of its own. Function says that it runs in a new frame.
struct Scope {
    std::vector<Load> loads;
};
struct FunctionScope : Scope {
    uint16_t slots = 0;
};

// ---- expressions ----

struct Constant : Node {
    Constant(Position p, Value v) : Node(NodeKind::constant, p), value(std::move(v)) {}
    Value value;
};

struct Name : Node {
    enum class Use : uint8_t { load, store, parameter };
    Name(Position p, std::string n, Value t)
        : Node(NodeKind::name, p), name(std::move(n)), text(std::move(t)) {}
    std::string name;
    Value text;  ///< the name as a string
    Use use = Use::load;
    VarRef ref;
    Value attribute;  ///< of the target ns.attribute; missing otherwise
};

/// list and tuple: displays, and targets of assignments
struct Display : Node {
    Display(NodeKind k, Position p) : Node(k, p) {}
    void each_child(const Visit& visit) const override { visit_all(items, visit); }
    Body items;
};

struct DictDisplay : Node {
    explicit DictDisplay(Position p) : Node(NodeKind::dict, p) {}
    void each_child(const Visit& visit) const override {
        for (const auto& [key, value] : entries) visit_one(key, visit), visit_one(value, visit);
    }
    std::vector<std::pair<NodePtr, NodePtr>> entries;
};

struct Attribute : Node {
    Attribute(Position p, NodePtr o, Value n)
        : Node(NodeKind::attribute, p), object(std::move(o)), name(std::move(n)) {}
    void each_child(const Visit& visit) const override { visit_one(object, visit); }
    NodePtr object;
    Value name;
};

struct Item : Node {
    Item(Position p, NodePtr o, NodePtr k)
        : Node(NodeKind::item, p), object(std::move(o)), key(std::move(k)) {}
    void each_child(const Visit& visit) const override {
        visit_one(object, visit);
        visit_one(key, visit);
    }
    NodePtr object, key;  ///< key may be a SliceNode
};

struct SliceNode : Node {
    explicit SliceNode(Position p) : Node(NodeKind::slice, p) {}
    void each_child(const Visit& visit) const override {
        for (const NodePtr* part : {&start, &stop, &step}) visit_one(*part, visit);
    }
    NodePtr start, stop, step;
};

struct Arguments {
    void each(const Visit& visit) const {
        visit_all(positional, visit);
        for (const auto& [name, value] : named) visit_one(value, visit);
        visit_one(star, visit);
        visit_one(star_star, visit);
    }
    Body positional;
    std::vector<std::pair<Value, NodePtr>> named;
    NodePtr star, star_star;
};

struct CallNode : Node {
    CallNode(Position p, NodePtr c) : Node(NodeKind::call, p), callee(std::move(c)) {}
    void each_child(const Visit& visit) const override {
        visit_one(callee, visit);
        arguments.each(visit);
    }
    NodePtr callee;
    Arguments arguments;
};

/// A filter or a test. Its input is null where it is applied to a block of text.
struct Application : Node {
    Application(NodeKind k, Position p, NodePtr i, std::string n)
        : Node(k, p), input(std::move(i)), name(std::move(n)) {}
    void each_child(const Visit& visit) const override {
        visit_one(input, visit);
        arguments.each(visit);
    }
    NodePtr input;
    std::string name;
    const BuiltinEntry* entry = nullptr;  ///< null: unknown, an error when it is reached
    Arguments arguments;
};

/// not x, -x, +x
struct Unary : Node {
    Unary(NodeKind k, Position p, NodePtr o) : Node(k, p), operand(std::move(o)) {}
    void each_child(const Visit& visit) const override { visit_one(operand, visit); }
    NodePtr operand;
    bool minus = false;
};

/// a and b, a or b, and the arithmetic operators
struct Binary : Node {
    Binary(NodeKind k, Position p, NodePtr l, NodePtr r)
        : Node(k, p), left(std::move(l)), right(std::move(r)) {}
    void each_child(const Visit& visit) const override {
        visit_one(left, visit);
        visit_one(right, visit);
    }
    NodePtr left, right;
    BinaryOp op = BinaryOp::add;
    bool is_and = false;
};

struct Compare : Node {
    Compare(Position p, NodePtr f) : Node(NodeKind::compare, p), first(std::move(f)) {}
    void each_child(const Visit& visit) const override {
        visit_one(first, visit);
        for (const auto& [op, operand] : rest) visit_one(operand, visit);
    }
    NodePtr first;
    std::vector<std::pair<CompareOp, NodePtr>> rest;
};

/// a if test else b
struct Condition : Node {
    explicit Condition(Position p) : Node(NodeKind::condition, p) {}
    void each_child(const Visit& visit) const override {
        for (const NodePtr* part : {&test, &then, &otherwise}) visit_one(*part, visit);
    }
    NodePtr test, then, otherwise;
};

// ---- statements ----

struct Text : Node {
    Text(Position p, std::string t) : Node(NodeKind::text, p), text(std::move(t)) {}
    std::string text;
};

struct Output : Node {
    Output(Position p, NodePtr v) : Node(NodeKind::output, p), value(std::move(v)) {}
    void each_child(const Visit& visit) const override { visit_one(value, visit); }
    NodePtr value;
};

struct For : Node {
    explicit For(Position p) : Node(NodeKind::for_loop, p) {}
    void each_child(const Visit& visit) const override {
        visit_one(target, visit);
        visit_one(iterable, visit);
        visit_all(body, visit);
        visit_all(otherwise, visit);
        visit_one(test, visit);
    }
    NodePtr target, iterable, test;
    NodePtr test_target;  ///< a copy of target: the test has variables of its own
    Body body, otherwise;
    bool recursive = false;
    bool uses_loop = false;  ///< the body needs the variable `loop`
    VarRef loop;
    Scope body_scope, otherwise_scope;
    FunctionScope test_scope;
    uint16_t slots = 0;  ///< of the frame of a recursive loop
};

struct Branch : Node {
    explicit Branch(Position p) : Node(NodeKind::branch, p) {}
    void each_child(const Visit& visit) const override {
        for (const auto& [test, body] : cases) visit_one(test, visit), visit_all(body, visit);
        visit_all(otherwise, visit);
    }
    std::vector<std::pair<NodePtr, Body>> cases;  ///< if and elif
    Body otherwise;
};

struct Set : Node {
    explicit Set(Position p) : Node(NodeKind::set, p) {}
    void each_child(const Visit& visit) const override {
        visit_one(target, visit);
        visit_one(value, visit);
    }
    NodePtr target, value;
};

struct SetBlock : Node {
    explicit SetBlock(Position p) : Node(NodeKind::set_block, p) {}
    void each_child(const Visit& visit) const override {
        visit_one(target, visit);
        visit_one(filter, visit);
        visit_all(body, visit);
    }
    NodePtr target, filter;
    Body body;
    Scope scope;
};

/// A macro, or the block of text of a call statement, which is a nameless macro.
struct MacroNode : Node {
    explicit MacroNode(Position p) : Node(NodeKind::macro, p) {}
    void each_child(const Visit& visit) const override {
        visit_all(parameters, visit);
        visit_all(defaults, visit);
        visit_all(body, visit);
    }
    std::string name;
    NodePtr target;   ///< the variable that holds it; null for the block of a call
    Body parameters;  ///< Names
    Body defaults;    ///< of the last parameters
    Body body;
    FunctionScope scope;
    bool takes_caller = false, takes_kwargs = false, takes_varargs = false;
    bool explicit_caller = false;  ///< `caller` is among the parameters
    VarRef caller, kwargs, varargs;
};

struct CallBlock : Node {
    explicit CallBlock(Position p) : Node(NodeKind::call_block, p) {}
    void each_child(const Visit& visit) const override {
        visit_one(call, visit);
        visit_one(macro, visit);
    }
    NodePtr call;   ///< null for {% generation %}, which calls its block at once
    NodePtr macro;  ///< a MacroNode
};

struct FilterBlock : Node {
    explicit FilterBlock(Position p) : Node(NodeKind::filter_block, p) {}
    void each_child(const Visit& visit) const override {
        visit_all(body, visit);
        visit_one(filter, visit);
    }
    NodePtr filter;
    Body body;
    Scope scope;
};

struct With : Node {
    explicit With(Position p) : Node(NodeKind::with, p) {}
    void each_child(const Visit& visit) const override {
        visit_all(targets, visit);
        visit_all(values, visit);
        visit_all(body, visit);
    }
    Body targets, values, body;
    Scope scope;
};

struct Block : Node {
    explicit Block(Position p) : Node(NodeKind::block, p) {}
    void each_child(const Visit& visit) const override { visit_all(body, visit); }
    std::string name;
    Body body;
    FunctionScope scope;
};

struct Autoescape : Node {
    explicit Autoescape(Position p) : Node(NodeKind::autoescape, p) {}
    void each_child(const Visit& visit) const override {
        visit_one(value, visit);
        visit_all(body, visit);
    }
    NodePtr value;
    Body body;
    Scope scope;
};

struct LoopControl : Node {
    LoopControl(Position p, bool b) : Node(NodeKind::loop_control, p), is_break(b) {}
    bool is_break;
};

/// Objects that belong to a template: its string literals, names and large integers.
class Constants {
public:
    Value text(std::string text) {
        owned_.push_back(std::make_unique<String>(std::move(text)));
        return Value::object(Kind::string, owned_.back().get());
    }
    Value wide(Int i) {
        owned_.push_back(std::make_unique<Wide>(i));
        return Value::object(Kind::wide, owned_.back().get());
    }

private:
    std::vector<std::unique_ptr<Object>> owned_;
};

/// A parsed template.
struct Tree {
    Constants constants;
    Body body;
    FunctionScope scope;
    std::vector<std::pair<std::string, uint16_t>> globals;  ///< variables of the outermost scope
    std::vector<std::string> free_names;  ///< taken from the variables of the rendering, sorted
};

}  // namespace exl3::jinja
