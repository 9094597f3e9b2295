#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"

namespace exl3::jinja {

/// What runs in one frame: the template, a macro, a recursive loop, the test of a loop.
struct FrameLayout {
    explicit FrameLayout(uint16_t d) : depth(d) {}
    uint16_t depth = 0;  ///< functions around it
    /// Scopes at the same level are never open together, so they share slots by name.
    std::map<std::pair<int, std::string>, uint16_t> slots;
    uint16_t slot(int level, const std::string& name);
};

struct Variable {
    const FrameLayout* frame = nullptr;
    uint16_t slot = 0;
};

/// The variables of one scope, as found by reading its statements once.
class Symbols {
public:
    Symbols(const Symbols* parent, FrameLayout& frame)
        : parent_(parent), frame_(&frame), level_(parent ? parent->level_ + 1 : 0) {}

    /// Reads a statement or expression of this scope; what is in scopes of its own is left out.
    void read(Node& node);
    void read_all(const Body& nodes);
    /// The targets of a for loop: set by the loop before anything else.
    void declare_targets(Node& target);
    Variable declare(const std::string& name);
    const Variable* find(const std::string& name) const;
    void load(const std::string& name, const Value& text);

    /// The actions on entry, seen from frame `from`.
    std::vector<Load> entry(const FrameLayout& from) const;
    const std::map<std::string, Variable>& variables() const { return variables_; }
    /// Names that had no variable when they were first read.
    std::set<std::string> free;

private:
    enum class Start : uint8_t { given, resolve, alias, unset };
    struct Entry {
        Start start = Start::unset;
        Variable outer;
        Value name;
    };
    /// One branch of an if: what it adds to `base`.
    struct BranchOf {
        const Symbols* base;
    };
    explicit Symbols(BranchOf b)
        : parent_(b.base->parent_), base_(b.base), frame_(b.base->frame_), level_(b.base->level_) {}

    const Variable* own(const std::string& name) const;
    bool stores(const std::string& name) const;
    void store(const std::string& name, const Value& text);
    Variable define(const std::string& name, Start start, Variable outer = {}, Value text = {});
    void read_branch(const Branch& branch);
    void read_case(Node& test, const Body& body, const Branch* rest);
    void merge(const std::vector<Symbols>& branches);

    const Symbols* parent_;
    const Symbols* base_ = nullptr;
    FrameLayout* frame_;
    int level_;
    std::map<std::string, Variable> variables_;
    std::map<uint16_t, Entry> entries_;
    std::map<std::string, Value> stores_;  ///< names that the scope sets, as strings
};

/// Which of `names` a piece of template reads before it sets them itself.
std::set<std::string> undeclared(const Body& nodes, std::set<std::string> names);

}  // namespace exl3::jinja
