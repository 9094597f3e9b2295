#include "text/jinja_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_parser_base.h"

namespace exl3::jinja {
namespace {

using Names = std::string_view;  // tags with spaces between them: "elif else endif"

class Parser : public ExpressionParser {
public:
    using ExpressionParser::ExpressionParser;

    void run() {
        tree_.body = statements({});
        tree_.scope = {};
    }

private:
    /// Everything up to a tag named in `ends`; its name is left as the current token.
    Body statements(Names ends);
    /// The same, from behind a tag, with the end of the last tag read as well.
    Body body(Names ends) {
        expect(TokenKind::block_end);
        return statements(ends);
    }
    Body last_body(std::string_view end) {
        Body b = body(end);
        take();
        return b;
    }
    NodePtr statement();
    NodePtr for_loop();
    NodePtr copy_target(const Node& target) const;
    NodePtr branch();
    NodePtr set();
    NodePtr macro();
    NodePtr call_block();
    NodePtr generation();
    NodePtr filter_block();
    NodePtr with();
    NodePtr block();
    NodePtr autoescape();
    void signature(MacroNode& macro);
    [[noreturn]] void unknown_tag(const Token& name) const;

    struct Open {
        std::string_view tag;
        Names ends;
    };
    std::vector<Open> open_;  // the tags that wait for their end, for messages
};

std::string quoted_list(Names names) {
    std::string out = "'";
    for (const char c : names) out += c == ' ' ? "' or '" : std::string(1, c);
    return out + "'";
}

bool has_name(Names names, std::string_view name) {
    while (!names.empty()) {
        const size_t end = std::min(names.find(' '), names.size());
        if (names.substr(0, end) == name) return true;
        names.remove_prefix(std::min(end + 1, names.size()));
    }
    return false;
}

void Parser::unknown_tag(const Token& name) const {
    std::string message = fmt::format("Encountered unknown tag '{}'.", name.text);
    if (!open_.empty())
        message += fmt::format(
            " Jinja was looking for the following tags: {}. The innermost block that needs to be "
            "closed is '{}'.",
            quoted_list(open_.back().ends), open_.back().tag);
    fail(message, name.at);
}

Body Parser::statements(Names ends) {
    Body out;
    for (;;) {
        const Token& token = current();
        switch (token.kind) {
            case TokenKind::data:
                out.push_back(std::make_unique<Text>(token.at, token.text));
                take();
                break;
            case TokenKind::variable_begin: {
                const Position at = take().at;
                out.push_back(done(std::make_unique<Output>(at, tuple_or_expression())));
                expect(TokenKind::variable_end);
                break;
            }
            case TokenKind::block_begin: {
                take();
                if (!current().is(TokenKind::name)) fail("tag name expected");
                if (has_name(ends, current().text)) return out;
                out.push_back(statement());
                expect(TokenKind::block_end);
                break;
            }
            default:
                if (ends.empty()) return out;
                fail(
                    fmt::format("Unexpected end of template. Jinja was looking for the following "
                                "tags: {}. The innermost block that needs to be closed is '{}'.",
                                quoted_list(ends), open_.empty() ? "" : open_.back().tag));
        }
    }
}

NodePtr Parser::statement() {
    const Nested nested(nesting_, current().at);
    using Parse = NodePtr (Parser::*)();
    struct Tag {
        std::string_view name;
        Parse parse;
        Names ends;
    };
    static constexpr Tag kTags[] = {
        {"for", &Parser::for_loop, "endfor else"},
        {"if", &Parser::branch, "elif else endif"},
        {"set", &Parser::set, "endset"},
        {"macro", &Parser::macro, "endmacro"},
        {"call", &Parser::call_block, "endcall"},
        {"generation", &Parser::generation, "endgeneration"},
        {"filter", &Parser::filter_block, "endfilter"},
        {"with", &Parser::with, "endwith"},
        {"block", &Parser::block, "endblock"},
        {"autoescape", &Parser::autoescape, "endautoescape"},
    };
    const Token& name = current();
    for (const Tag& tag : kTags) {
        if (name.text != tag.name) continue;
        open_.push_back({tag.name, tag.ends});
        NodePtr node = (this->*tag.parse)();
        open_.pop_back();
        return node;
    }
    if (name.text == "break" || name.text == "continue")
        return std::make_unique<LoopControl>(name.at, take().text == "break");
    if (name.text == "print") {
        const Position at = take().at;
        return done(std::make_unique<Output>(at, tuple_or_expression()));
    }
    for (const std::string_view other : {"include", "import", "from", "extends"})
        if (name.text == other)
            throw Failure{Fault::unsupported,
                          fmt::format("'{}' is not supported: a chat template is one file", other),
                          name.at};
    unknown_tag(name);
}

NodePtr Parser::copy_target(const Node& target) const {
    if (target.kind == NodeKind::name) {
        const auto& n = static_cast<const Name&>(target);
        auto copy = std::make_unique<Name>(n.at, n.name, n.text);
        copy->use = n.use;
        return copy;
    }
    auto copy = std::make_unique<Display>(NodeKind::tuple, target.at);
    for (const NodePtr& item : static_cast<const Display&>(target).items)
        copy->items.push_back(copy_target(*item));
    return done(std::move(copy));
}

NodePtr Parser::for_loop() {
    auto node = std::make_unique<For>(take().at);
    node->target = target(Level::primary, "in");
    expect_name("in");
    node->iterable = tuple_or_expression(Level::no_condition);
    if (skip_name("if")) {
        node->test = expression();
        node->test_target = copy_target(*node->target);
    }
    node->recursive = skip_name("recursive");
    node->body = body("endfor else");
    if (take().text == "else") node->otherwise = last_body("endfor");
    return done(std::move(node));
}

NodePtr Parser::branch() {
    auto node = std::make_unique<Branch>(take().at);
    for (;;) {
        NodePtr test = tuple_or_expression(Level::no_condition);
        Body b = body("elif else endif");
        node->cases.emplace_back(std::move(test), std::move(b));
        const Token end = take();
        if (end.text == "endif") break;
        if (end.text == "else") {
            node->otherwise = last_body("endif");
            break;
        }
    }
    return done(std::move(node));
}

NodePtr Parser::set() {
    const Position at = take().at;
    NodePtr where = target(Level::set_target);
    if (skip_op("=")) {
        auto node = std::make_unique<Set>(at);
        node->target = std::move(where);
        node->value = tuple_or_expression();
        return done(std::move(node));
    }
    auto node = std::make_unique<SetBlock>(at);
    node->target = std::move(where);
    node->filter = filters(nullptr);
    node->body = last_body("endset");
    return done(std::move(node));
}

void Parser::signature(MacroNode& macro) {
    expect_op("(");
    while (!current().is_op(")")) {
        if (!macro.parameters.empty()) expect_op(",");
        NodePtr name = name_target();
        auto& parameter = static_cast<Name&>(*name);
        parameter.use = Name::Use::parameter;
        for (const NodePtr& other : macro.parameters)
            if (static_cast<const Name&>(*other).name == parameter.name)
                fail(fmt::format("duplicate argument '{}'", parameter.name), parameter.at);
        if (skip_op("="))
            macro.defaults.push_back(expression());
        else if (!macro.defaults.empty())
            fail("non-default argument follows default argument");
        macro.parameters.push_back(std::move(name));
    }
    expect_op(")");
}

NodePtr Parser::macro() {
    auto node = std::make_unique<MacroNode>(take().at);
    node->target = name_target();
    node->name = static_cast<Name&>(*node->target).name;
    signature(*node);
    node->body = last_body("endmacro");
    return done(std::move(node));
}

NodePtr Parser::call_block() {
    const Position at = take().at;
    auto macro = std::make_unique<MacroNode>(at);
    if (current().is_op("(")) signature(*macro);
    auto node = std::make_unique<CallBlock>(at);
    node->call = expression();
    if (node->call->kind != NodeKind::call) fail("expected call", node->call->at);
    macro->body = last_body("endcall");
    node->macro = done(std::move(macro));
    return done(std::move(node));
}

NodePtr Parser::generation() {
    const Position at = take().at;
    auto macro = std::make_unique<MacroNode>(at);
    macro->body = last_body("endgeneration");
    auto node = std::make_unique<CallBlock>(at);
    node->macro = done(std::move(macro));
    return done(std::move(node));
}

NodePtr Parser::filter_block() {
    auto node = std::make_unique<FilterBlock>(take().at);
    node->filter = filters(nullptr, true);
    node->body = last_body("endfilter");
    return done(std::move(node));
}

NodePtr Parser::with() {
    auto node = std::make_unique<With>(take().at);
    while (!current().is(TokenKind::block_end)) {
        if (!node->targets.empty()) expect_op(",");
        NodePtr where = target();
        to_store(*where, Name::Use::parameter);
        expect_op("=");
        node->targets.push_back(std::move(where));
        node->values.push_back(expression());
    }
    node->body = last_body("endwith");
    return done(std::move(node));
}

NodePtr Parser::block() {
    auto node = std::make_unique<Block>(take().at);
    node->name = expect_name().text;
    if (current().is_name("scoped") || current().is_name("required"))
        throw Failure{Fault::unsupported,
                      fmt::format("'{}' blocks are not supported: a chat template is one file",
                                  current().text),
                      current().at};
    node->body = last_body("endblock");
    skip_name(node->name);
    return done(std::move(node));
}

NodePtr Parser::autoescape() {
    auto node = std::make_unique<Autoescape>(take().at);
    node->value = expression();
    node->body = last_body("endautoescape");
    return done(std::move(node));
}

}  // namespace

void parse(std::string_view source, Tree& tree) {
    Parser(tokenize(source), tree).run();
}

}  // namespace exl3::jinja
