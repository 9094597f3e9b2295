// What may follow a primary expression: .name, [key], (arguments), |filter, is test.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_parser_base.h"

namespace exl3::jinja {

NodePtr ExpressionParser::postfix(NodePtr node) {
    for (;;) {
        if (current().is_op(".") || current().is_op("["))
            node = subscript(std::move(node));
        else if (current().is_op("("))
            node = call(std::move(node));
        else
            return node;
    }
}

NodePtr ExpressionParser::suffixes(NodePtr node) {
    for (;;) {
        if (current().is_op("|"))
            node = filters(std::move(node));
        else if (current().is_name("is"))
            node = test(std::move(node));
        else if (current().is_op("("))
            node = call(std::move(node));
        else
            return node;
    }
}

NodePtr ExpressionParser::subscript(NodePtr node) {
    const Token open = take();
    if (open.text == ".") {
        if (current().is(TokenKind::name)) {
            const Token name = take();
            return done(std::make_unique<Attribute>(name.at, std::move(node),
                                                    tree_.constants.text(name.text)));
        }
        if (!current().is(TokenKind::integer)) fail("expected name or number");
        const Position at = current().at;
        return done(std::make_unique<Item>(at, std::move(node), literal_integer()));
    }
    Body keys;
    while (!current().is_op("]")) {
        if (!keys.empty()) expect_op(",");
        keys.push_back(slice_or_index());
    }
    expect_op("]");
    if (keys.size() == 1)
        return done(std::make_unique<Item>(open.at, std::move(node), std::move(keys[0])));
    auto tuple = std::make_unique<Display>(NodeKind::tuple, open.at);
    for (const NodePtr& key : keys)
        if (key->kind == NodeKind::slice) fail("a slice among several subscripts", key->at);
    tuple->items = std::move(keys);
    return done(std::make_unique<Item>(open.at, std::move(node), done(std::move(tuple))));
}

NodePtr ExpressionParser::slice_or_index() {
    auto slice = std::make_unique<SliceNode>(current().at);
    const auto ends = [&] { return current().is_op("]") || current().is_op(","); };
    if (!skip_op(":")) {
        NodePtr node = expression();
        if (!skip_op(":")) return node;
        slice->start = std::move(node);
    }
    if (!current().is_op(":") && !ends()) slice->stop = expression();
    if (skip_op(":") && !ends()) slice->step = expression();
    return done(std::move(slice));
}

Arguments ExpressionParser::arguments() {
    const Nested nested(nesting_, current().at);
    Arguments a;
    const auto ensure = [&](bool ok) {
        if (!ok) fail("invalid syntax for function call expression");
    };
    expect_op("(");
    for (bool first = true; !current().is_op(")"); first = false) {
        if (!first) {
            expect_op(",");
            if (current().is_op(")")) break;  // a comma may come last
        }
        if (current().is_op("*")) {
            ensure(!a.star && !a.star_star);
            take();
            a.star = expression();
        } else if (current().is_op("**")) {
            ensure(!a.star_star);
            take();
            a.star_star = expression();
        } else if (current().is(TokenKind::name) && ahead().is_op("=")) {
            ensure(!a.star_star);
            const Token name = take();
            take();
            for (const auto& [earlier, value] : a.named)
                if (earlier.as_text() == name.text)
                    fail(fmt::format("keyword argument repeated: {}", name.text), name.at);
            a.named.emplace_back(tree_.constants.text(name.text), expression());
        } else {
            ensure(!a.star && !a.star_star && a.named.empty());
            a.positional.push_back(expression());
        }
    }
    expect_op(")");
    return a;
}

NodePtr ExpressionParser::call(NodePtr callee) {
    auto node = std::make_unique<CallNode>(current().at, std::move(callee));
    node->arguments = arguments();
    return done(std::move(node));
}

std::string ExpressionParser::dotted_name() {
    std::string name = expect_name().text;
    while (skip_op(".")) name += "." + expect_name().text;
    return name;
}

NodePtr ExpressionParser::filters(NodePtr input, bool first) {
    for (; first || current().is_op("|"); first = false) {
        if (!first) take();
        input = filter(std::move(input));
    }
    return input;
}

NodePtr ExpressionParser::filter(NodePtr input) {
    const Position at = current().at;
    auto node =
        std::make_unique<Application>(NodeKind::filter, at, std::move(input), dotted_name());
    node->entry = find_filter(node->name);
    if (current().is_op("(")) node->arguments = arguments();
    return done(std::move(node));
}

NodePtr ExpressionParser::test(NodePtr input) {
    take();
    const bool negated = skip_name("not");
    const Position at = current().at;
    auto node = std::make_unique<Application>(NodeKind::test, at, std::move(input), dotted_name());
    node->entry = find_test(node->name);
    const Token& t = current();
    const bool argument =
        (t.is(TokenKind::name) && !t.is_name("else") && !t.is_name("or") && !t.is_name("and")) ||
        t.is(TokenKind::string) || t.is(TokenKind::integer) || t.is(TokenKind::real) ||
        t.is_op("[") || t.is_op("{");
    if (t.is_op("(")) {
        node->arguments = arguments();
    } else if (argument) {
        if (t.is_name("is")) fail("You cannot chain multiple tests with is");
        node->arguments.positional.push_back(postfix(primary()));
    }
    NodePtr result = done(std::move(node));
    if (!negated) return result;
    return done(std::make_unique<Unary>(NodeKind::negation, at, std::move(result)));
}

}  // namespace exl3::jinja
