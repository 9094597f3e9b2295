// The grammar of expressions. From loose to tight: if-else, or, and, not, comparisons, + and -, ~,
// * / // %, **, signs, then calls, subscripts, filters and tests.
#include <fmt/format.h>

#include "text/jinja_parser_base.h"

namespace exl3::jinja {

NodePtr ExpressionParser::expression(Level level) {
    const Nested nested(nesting_, current().at);
    switch (level) {
        case Level::full: return condition();
        case Level::no_condition: return disjunction();
        case Level::primary: return primary();
        case Level::set_target: break;
    }
    return current().is(TokenKind::name) && ahead().is_op(".") ? namespace_target() : primary();
}

NodePtr ExpressionParser::condition() {
    NodePtr value = disjunction();
    while (current().is_name("if")) {
        auto node = std::make_unique<Condition>(take().at);
        node->then = std::move(value);
        node->test = disjunction();
        if (skip_name("else")) {
            const Nested nested(nesting_, current().at);
            node->otherwise = condition();
        }
        value = done(std::move(node));
    }
    return value;
}

NodePtr ExpressionParser::disjunction() {
    NodePtr left = conjunction();
    while (current().is_name("or")) {
        const Position at = take().at;
        left = done(std::make_unique<Binary>(NodeKind::logic, at, std::move(left), conjunction()));
    }
    return left;
}

NodePtr ExpressionParser::conjunction() {
    NodePtr left = inversion();
    while (current().is_name("and")) {
        const Position at = take().at;
        auto node = std::make_unique<Binary>(NodeKind::logic, at, std::move(left), inversion());
        node->is_and = true;
        left = done(std::move(node));
    }
    return left;
}

NodePtr ExpressionParser::inversion() {
    if (!current().is_name("not")) return comparison();
    const Nested nested(nesting_, current().at);
    const Position at = take().at;
    return done(std::make_unique<Unary>(NodeKind::negation, at, inversion()));
}

NodePtr ExpressionParser::comparison() {
    constexpr std::pair<std::string_view, CompareOp> kOperators[] = {
        {"==", CompareOp::eq}, {"!=", CompareOp::ne}, {"<", CompareOp::lt},
        {"<=", CompareOp::le}, {">", CompareOp::gt},  {">=", CompareOp::ge}};
    const Position at = current().at;
    NodePtr first = sum();
    auto node = std::make_unique<Compare>(at, nullptr);
    for (;;) {
        CompareOp op = CompareOp::in;
        bool found = false;
        for (const auto& [text, candidate] : kOperators)
            if (!found && skip_op(text)) {
                op = candidate;
                found = true;
            }
        if (!found && current().is_name("not") && ahead().is_name("in")) {
            take();
            take();
            op = CompareOp::not_in;
        } else if (!found && !skip_name("in")) {
            break;
        }
        node->rest.emplace_back(op, sum());
    }
    if (node->rest.empty()) return first;
    node->first = std::move(first);
    return done(std::move(node));
}

NodePtr ExpressionParser::binary(Position at, BinaryOp op, NodePtr left, NodePtr right) const {
    auto node = std::make_unique<Binary>(NodeKind::binary, at, std::move(left), std::move(right));
    node->op = op;
    return done(std::move(node));
}

NodePtr ExpressionParser::sum() {
    NodePtr left = concatenation();
    while (current().is_op("+") || current().is_op("-")) {
        const Token op = take();
        left = binary(op.at, op.text == "+" ? BinaryOp::add : BinaryOp::sub, std::move(left),
                      concatenation());
    }
    return left;
}

NodePtr ExpressionParser::concatenation() {
    const Position at = current().at;
    NodePtr first = product();
    if (!current().is_op("~")) return first;
    auto node = std::make_unique<Display>(NodeKind::concat, at);
    node->items.push_back(std::move(first));
    while (skip_op("~")) node->items.push_back(product());
    return done(std::move(node));
}

NodePtr ExpressionParser::product() {
    NodePtr left = power();
    for (;;) {
        BinaryOp op = BinaryOp::mul;
        if (current().is_op("/"))
            op = BinaryOp::div;
        else if (current().is_op("//"))
            op = BinaryOp::floordiv;
        else if (current().is_op("%"))
            op = BinaryOp::mod;
        else if (!current().is_op("*"))
            return left;
        const Position at = take().at;
        left = binary(at, op, std::move(left), power());
    }
}

NodePtr ExpressionParser::power() {
    NodePtr left = unary();
    while (current().is_op("**")) {
        const Position at = take().at;
        left = binary(at, BinaryOp::pow, std::move(left), unary());
    }
    return left;
}

NodePtr ExpressionParser::unary(bool with_filters) {
    NodePtr node;
    if (current().is_op("-") || current().is_op("+")) {
        const Nested nested(nesting_, current().at);
        const Token op = take();
        auto sign = std::make_unique<Unary>(NodeKind::sign, op.at, unary(false));
        sign->minus = op.text == "-";
        node = done(std::move(sign));
    } else {
        node = primary();
    }
    node = postfix(std::move(node));
    return with_filters ? suffixes(std::move(node)) : std::move(node);
}

std::unique_ptr<Name> ExpressionParser::make_name(const Token& token) {
    return std::make_unique<Name>(token.at, token.text, tree_.constants.text(token.text));
}

NodePtr ExpressionParser::primary() {
    switch (current().kind) {
        case TokenKind::name: {
            const Token token = take();
            const std::string& n = token.text;
            const auto constant = [&](Value v) {
                return std::make_unique<Constant>(token.at, std::move(v));
            };
            if (n == "true" || n == "True") return constant(Value::boolean(true));
            if (n == "false" || n == "False") return constant(Value::boolean(false));
            if (n == "none" || n == "None") return constant(Value::none());
            return make_name(token);
        }
        case TokenKind::string: return literal_string();
        case TokenKind::integer: return literal_integer();
        case TokenKind::real: return literal_real();
        case TokenKind::op:
            if (skip_op("(")) {
                NodePtr inside = tuple_or_expression(Level::full, true);
                expect_op(")");
                return inside;
            }
            if (current().is_op("[")) return list_display();
            if (current().is_op("{")) return dict_display();
            break;
        default: break;
    }
    fail(fmt::format("unexpected '{}'", describe(current())));
}

NodePtr ExpressionParser::literal_string() {
    const Position at = current().at;
    std::string text;
    while (current().is(TokenKind::string)) text += take().text;  // neighbours are one string
    return std::make_unique<Constant>(at, tree_.constants.text(std::move(text)));
}

NodePtr ExpressionParser::literal_integer() {
    const Token token = take();
    Int i = 0;
    if (parse_int(token.text, 0, i) != Parsed::yes)
        fail("the integer has more than 127 bits", token.at);
    const auto small = static_cast<int64_t>(i);
    return std::make_unique<Constant>(token.at,
                                      small == i ? Value::integer(small) : tree_.constants.wide(i));
}

NodePtr ExpressionParser::literal_real() {
    const Token token = take();
    double d = 0;
    parse_real(token.text, d);
    return std::make_unique<Constant>(token.at, Value::real(d));
}

bool ExpressionParser::ends_tuple(std::string_view end_name) const {
    const Token& t = current();
    return t.is(TokenKind::variable_end) || t.is(TokenKind::block_end) || t.is_op(")") ||
           (!end_name.empty() && t.is_name(end_name));
}

NodePtr ExpressionParser::tuple_or_expression(Level level, bool in_parentheses,
                                              std::string_view end_name) {
    const Nested nested(nesting_, current().at);
    auto tuple = std::make_unique<Display>(NodeKind::tuple, current().at);
    bool is_tuple = false;
    for (;;) {
        if (!tuple->items.empty()) expect_op(",");
        if (ends_tuple(end_name)) break;
        tuple->items.push_back(expression(level));
        if (!current().is_op(",")) break;
        is_tuple = true;
    }
    if (!is_tuple) {
        if (!tuple->items.empty()) return std::move(tuple->items[0]);
        if (!in_parentheses)
            fail(fmt::format("Expected an expression, got '{}'", describe(current())));
    }
    return done(std::move(tuple));
}

NodePtr ExpressionParser::list_display() {
    auto list = std::make_unique<Display>(NodeKind::list, take().at);
    while (!current().is_op("]")) {
        if (!list->items.empty()) expect_op(",");
        if (current().is_op("]")) break;
        list->items.push_back(expression());
    }
    expect_op("]");
    return done(std::move(list));
}

NodePtr ExpressionParser::dict_display() {
    auto dict = std::make_unique<DictDisplay>(take().at);
    while (!current().is_op("}")) {
        if (!dict->entries.empty()) expect_op(",");
        if (current().is_op("}")) break;
        NodePtr key = expression();
        expect_op(":");
        dict->entries.emplace_back(std::move(key), expression());
    }
    expect_op("}");
    return done(std::move(dict));
}

NodePtr ExpressionParser::name_target() {
    auto name = make_name(expect_name());
    to_store(*name, Name::Use::store);
    return name;
}

// ns.attribute
NodePtr ExpressionParser::namespace_target() {
    auto name = make_name(take());
    take();
    name->attribute = tree_.constants.text(expect_name().text);
    return name;
}

NodePtr ExpressionParser::target(Level level, std::string_view end_name) {
    NodePtr node = tuple_or_expression(level, false, end_name);
    to_store(*node, Name::Use::store);
    return node;
}

void ExpressionParser::to_store(Node& node, Name::Use use) const {
    if (node.kind == NodeKind::name) {
        static_cast<Name&>(node).use = use;
        return;
    }
    if (node.kind != NodeKind::tuple)
        fail("can't assign to this: a name or a tuple of names is needed", node.at);
    node.each_child([&](Node& child) { to_store(child, use); });
}

}  // namespace exl3::jinja
