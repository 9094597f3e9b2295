#pragma once
#include <map>
#include <string>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_dict.h"

namespace exl3::jinja {

/// The variables of one running function. Macros keep the frame that they were made in.
struct Frame : Container {
    Frame(size_t n, Value p) : slots(n), parent(std::move(p)) {}
    void clear() override {
        slots.clear();
        parent = {};
    }
    std::vector<Value> slots;
    Value parent;  ///< the frame of the function around it
};

/// Runs one template once.
class Interpreter {
public:
    Interpreter(Runtime& rt, const Tree& tree, const Json& variables)
        : rt_(rt), tree_(tree), variables_(variables) {}

    /// The whole template; its text.
    std::string run();

private:
    enum class Flow : uint8_t { normal, break_loop, continue_loop };
    class LoopContext;
    class Macro;
    struct LoopFilter;

    // ---- variables ----
    Value& variable(VarRef ref);
    /// A variable of the rendering or a global function; missing if there is none.
    Value resolve(const Value& name);
    Value convert(const Json& json, const std::string& variable);
    void enter(const Scope& scope);
    void leave(const Scope& scope);
    Value make_frame(size_t slots, Value parent);

    // ---- expressions (jinja_eval.cpp) ----
    Value eval(const Node& node);
    Value eval_dict(const DictDisplay& node);
    Value eval_item(const Item& node);
    Value eval_call(const CallNode& node, const Value* caller = nullptr);
    Value eval_application(const Application& node, const Value* input = nullptr);
    Value eval_logic(const Binary& node);
    Value eval_concat(const Display& node);
    Value eval_compare(const Compare& node);
    Value eval_condition(const Condition& node);
    std::vector<Value> eval_all(const Body& nodes);
    Args eval_arguments(const Arguments& arguments);
    void add_star(Args& args, const Value& star);
    void add_star_star(Args& args, const Value& star_star);
    void assign(const Node& target, Value value);
    Value namespace_of(const Name& target);
    void assign_items(const Display& targets, const Value& value);

    // ---- statements (jinja_exec.cpp) ----
    Flow exec(const Body& body);
    Flow exec(const Node& node);
    void emit(const Value& value);
    void exec_set(const Set& node);
    Flow exec_branch(const Branch& node);
    Flow exec_set_block(const SetBlock& node);
    Flow exec_filter_block(const FilterBlock& node);
    Flow exec_with(const With& node);
    Flow exec_autoescape(const Autoescape& node);
    void exec_block(const Block& node);
    void exec_call_block(const CallBlock& node);
    /// Runs `body` with its output kept apart. The text is missing when a break or continue left
    /// the body.
    Flow capture(const Body& body, Value& text);

    // ---- loops (jinja_loop.cpp) ----
    Flow exec_for(const For& node);
    Flow iterate(const For& node, const Value& iterable, LoopContext* loop);
    Value recurse(const For& node, const Value& parent, const Value& iterable, int depth);

    // ---- macros (jinja_macro.cpp) ----
    Value make_macro(const MacroNode& node);
    Value call_macro(const MacroNode& node, const Value& closure, const Args& args);

    /// Runs in another frame, and with other output, until it ends.
    class Activation;

    Runtime& rt_;
    const Tree& tree_;
    const Json& variables_;
    std::map<std::string, Value, std::less<>> resolved_;
    Value root_;   ///< the frame of the template itself
    Value frame_;  ///< the running one
    Buffer* out_ = nullptr;
};

class Interpreter::Activation {
public:
    Activation(Interpreter& in, Value frame, Buffer& out)
        : in_(in), frame_(std::move(in.frame_)), out_(in.out_) {
        in.frame_ = std::move(frame);
        in.out_ = &out;
    }
    Activation(const Activation&) = delete;
    Activation& operator=(const Activation&) = delete;
    ~Activation() {
        in_.frame_ = std::move(frame_);
        in_.out_ = out_;
    }

private:
    Interpreter& in_;
    Value frame_;
    Buffer* out_;
};

}  // namespace exl3::jinja
