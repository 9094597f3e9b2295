#include "text/jinja_symbols.h"

#include <limits>

namespace exl3::jinja {

uint16_t FrameLayout::slot(int level, const std::string& name) {
    if (slots.size() >= std::numeric_limits<uint16_t>::max())
        throw Failure{Fault::syntax, "too many variables in one macro or template", {}};
    return slots.try_emplace({level, name}, static_cast<uint16_t>(slots.size())).first->second;
}

const Variable* Symbols::own(const std::string& name) const {
    const auto at = variables_.find(name);
    if (at != variables_.end()) return &at->second;
    return base_ ? base_->own(name) : nullptr;
}

const Variable* Symbols::find(const std::string& name) const {
    const Variable* v = own(name);
    return v || !parent_ ? v : parent_->find(name);
}

bool Symbols::stores(const std::string& name) const {
    return stores_.count(name) || (base_ && base_->stores(name));
}

Variable Symbols::define(const std::string& name, Start start, Variable outer, Value text) {
    const Variable v{frame_, frame_->slot(level_, name)};
    variables_[name] = v;
    entries_[v.slot] = {start, outer, std::move(text)};
    return v;
}

Variable Symbols::declare(const std::string& name) {
    stores_.emplace(name, Value());
    return define(name, Start::given);
}

void Symbols::load(const std::string& name, const Value& text) {
    if (find(name)) return;
    free.insert(name);
    define(name, Start::resolve, {}, text);
}

void Symbols::store(const std::string& name, const Value& text) {
    stores_.emplace(name, text);
    if (own(name)) return;
    const Variable* outer = parent_ ? parent_->find(name) : nullptr;
    if (outer)
        define(name, Start::alias, *outer);
    else
        define(name, Start::unset);
}

void Symbols::declare_targets(Node& target) {
    if (target.kind == NodeKind::name) {
        declare(static_cast<Name&>(target).name);
        return;
    }
    target.each_child([&](Node& child) { declare_targets(child); });
}

void Symbols::read_all(const Body& nodes) {
    for (const NodePtr& n : nodes) read(*n);
}

void Symbols::read(Node& node) {
    switch (node.kind) {
        case NodeKind::name: {
            auto& n = static_cast<Name&>(node);
            if (n.use == Name::Use::parameter)
                declare(n.name);
            else if (n.use == Name::Use::store && n.attribute.missing())
                store(n.name, n.text);
            else
                load(n.name, n.text);
            break;
        }
        case NodeKind::set:  // the value is read before the target is set
            read(*static_cast<Set&>(node).value);
            read(*static_cast<Set&>(node).target);
            break;
        case NodeKind::branch: read_branch(static_cast<Branch&>(node)); break;
        case NodeKind::for_loop: read(*static_cast<For&>(node).iterable); break;
        case NodeKind::macro: read(*static_cast<MacroNode&>(node).target); break;
        case NodeKind::call_block:
            if (const auto& call = static_cast<CallBlock&>(node).call) read(*call);
            break;
        case NodeKind::filter_block: read(*static_cast<FilterBlock&>(node).filter); break;
        case NodeKind::with: read_all(static_cast<With&>(node).values); break;
        case NodeKind::set_block: read(*static_cast<SetBlock&>(node).target); break;
        case NodeKind::block:
        case NodeKind::autoescape: break;
        default: node.each_child([&](Node& child) { read(child); });
    }
}

void Symbols::read_branch(const Branch& branch) {
    read_case(*branch.cases[0].first, branch.cases[0].second, &branch);
}

// One case of an if. `rest` holds the elif cases and the else, for the first case only.
void Symbols::read_case(Node& test, const Body& body, const Branch* rest) {
    read(test);
    std::vector<Symbols> branches(3, Symbols(BranchOf{this}));
    branches[0].read_all(body);
    if (rest) {
        for (size_t i = 1; i < rest->cases.size(); ++i)
            branches[1].read_case(*rest->cases[i].first, rest->cases[i].second, nullptr);
        branches[2].read_all(rest->otherwise);
    }
    merge(branches);
}

// A variable that only some of the branches set starts with the value of the outer one, or with
// the rendering's variable of that name.
void Symbols::merge(const std::vector<Symbols>& branches) {
    std::map<std::string, size_t> setters;
    std::map<std::string, Value> texts;
    for (const Symbols& b : branches)
        for (const auto& [name, text] : b.stores_)
            if (!stores(name)) {
                ++setters[name];
                texts.emplace(name, text);
            }
    for (const Symbols& b : branches) {
        for (const auto& [name, v] : b.variables_) variables_[name] = v;
        for (const auto& [slot, e] : b.entries_) entries_[slot] = e;
        stores_.insert(b.stores_.begin(), b.stores_.end());
        free.insert(b.free.begin(), b.free.end());
    }
    for (const auto& [name, count] : setters) {
        if (count == branches.size()) continue;
        const Variable* outer = parent_ ? parent_->find(name) : nullptr;
        Entry& e = entries_[own(name)->slot];
        e.start = outer ? Start::alias : Start::resolve;
        if (outer) e.outer = *outer;
        e.name = texts.at(name);
    }
}

std::vector<Load> Symbols::entry(const FrameLayout& from) const {
    std::vector<Load> out;
    for (const auto& [slot, e] : entries_) {
        Load load;
        load.slot = slot;
        switch (e.start) {
            case Start::given: continue;
            case Start::unset: load.how = Load::How::unset; break;
            case Start::resolve:
                load.how = Load::How::resolve;
                load.name = e.name;
                break;
            case Start::alias:
                load.how = Load::How::alias;
                load.source = {static_cast<uint16_t>(from.depth - e.outer.frame->depth),
                               e.outer.slot};
                break;
        }
        out.push_back(std::move(load));
    }
    return out;
}

namespace {

void visit_undeclared(Node& node, std::set<std::string>& names, std::set<std::string>& found) {
    if (node.kind == NodeKind::block) return;
    if (node.kind == NodeKind::name) {
        const auto& n = static_cast<const Name&>(node);
        if (n.use == Name::Use::load && names.count(n.name)) found.insert(n.name);
        // ns.attr = ... names a variable without reading or setting it.
        if (n.use != Name::Use::load && n.attribute.missing()) names.erase(n.name);
        return;
    }
    node.each_child([&](Node& child) { visit_undeclared(child, names, found); });
}

}  // namespace

std::set<std::string> undeclared(const Body& nodes, std::set<std::string> names) {
    std::set<std::string> found;
    for (const NodePtr& n : nodes) visit_undeclared(*n, names, found);
    return found;
}

}  // namespace exl3::jinja
