#include "grammar/rules.h"

#include "base/error.h"

namespace exl3 {

Rules::Expr Rules::add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<Expr>(nodes_.size()) - 1;
}

Rules::Expr Rules::text(std::string_view bytes) {
    Node n{.kind = Kind::text};
    n.bytes = bytes;
    return add(std::move(n));
}

std::string Rules::special_bytes(int32_t id) {
    std::string bytes = "\xff";
    for (int i = 3; i >= 0; --i) bytes += static_cast<char>((id >> (7 * i)) & 0x7f);
    return bytes;
}

Rules::Expr Rules::one_of(const std::vector<std::string>& texts) {
    Node n{.kind = Kind::one_of};
    n.texts = texts;
    return add(std::move(n));
}

Rules::Expr Rules::chars(CharSet set) {
    Node n{.kind = Kind::chars};
    n.set = std::move(set);
    return add(std::move(n));
}

Rules::Expr Rules::sequence(std::vector<Expr> parts) {
    Node n{.kind = Kind::sequence};
    n.parts = std::move(parts);
    return add(std::move(n));
}

Rules::Expr Rules::any_of(std::vector<Expr> choices) {
    if (choices.size() == 1) return choices.front();
    Node n{.kind = Kind::any_of};
    n.parts = std::move(choices);
    return add(std::move(n));
}

Rules::Expr Rules::repeat(Expr e, int min, int max) {
    Node n{.kind = Kind::repeat};
    n.parts = {e};
    n.min = min;
    n.max = max < min ? kNoLimit : max;
    return add(std::move(n));
}

Rules::Expr Rules::call(Rule rule) {
    Node n{.kind = Kind::call};
    n.rule = rule;
    return add(std::move(n));
}

Rules::Rule Rules::add_rule(std::string name) {
    Definition d;
    d.name = std::move(name);
    rules_.push_back(std::move(d));
    return static_cast<Rule>(rules_.size()) - 1;
}

void Rules::define(Rule rule, Expr e) {
    EXL3_CHECK(!defined(rule) && e >= 0);
    rules_[static_cast<size_t>(rule)].body = e;
}

bool Rules::defined(Rule rule) const {
    return rules_[static_cast<size_t>(rule)].body >= 0;
}

}  // namespace exl3
